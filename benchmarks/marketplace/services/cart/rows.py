"""What the service of carts keeps: carts with their items and checkouts. A cart is an entity; its key is the customer.

The copies of the products' prices are in `benchmarks.marketplace.services.cart.replica`.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from benchmarks.marketplace.values import Cents, Id, Pieces, RefusedItem, Version
from styx import Index, Operator


class CartStatus(StrEnum):
    """Whether a cart takes items. A checkout is one transaction, so none is ever seen between its steps."""

    OPEN = "OPEN"
    CHECKOUT_SENT = "CHECKOUT_SENT"


class Cart(Struct, array_like=True):
    """A cart's own state."""

    status: CartStatus
    created_at: datetime
    updated_at: datetime


class CartItemRow(Struct, array_like=True):
    """An item in a cart. `unit_price` is the latest price that the cart knows, `added_price` the one when it was put in
    it.
    """

    seller_id: Id
    product_id: Id
    product_name: str
    unit_price: Cents
    freight_value: Cents
    quantity: Pieces
    voucher: Cents
    version: Version
    added_price: Cents


class CheckoutRow(Struct, array_like=True):
    """A checkout that the cart has submitted. `order_id` is None if nothing could be reserved; then `refused` says why.
    `failed_at` is when that or its payment failed, by its `cause`, `abandoned_at` when nobody had tried again in time.
    """

    checkout_id: str
    at: datetime
    order_id: int | None
    refused: list[RefusedItem]
    failed_at: datetime | None = None
    cause: Annotated[str, Meta(max_length=64)] = ""
    abandoned_at: datetime | None = None


class OpenFailure(Struct, array_like=True):
    """A failed checkout that is abandoned unless the customer tries again in time."""

    checkout_id: str
    failed_at: datetime
    cause: str


cart = Operator("cart", key_type=int, state_type=Cart)
items = cart.table(
    "items",
    CartItemRow,
    key=("seller_id", "product_id"),
    indexes=[Index("holding", equal=("seller_id", "product_id"), scope="partition")],
)
checkouts = cart.table("checkouts", CheckoutRow, key="checkout_id")
failures = cart.table("failures", OpenFailure, key="checkout_id")

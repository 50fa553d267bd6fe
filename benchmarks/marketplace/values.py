"""Values that requests, functions and events of several services share. They do nothing.

Amounts of money are whole cents, so that sums are exact. Ids are integers from 1. Times have a time zone.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

Id = Annotated[int, Meta(ge=1)]
Cents = Annotated[int, Meta(ge=0, le=10**12)]
Pieces = Annotated[int, Meta(ge=1, le=1_000_000)]
Version = Annotated[str, Meta(min_length=1, max_length=64)]
CheckoutId = Annotated[str, Meta(min_length=1, max_length=64)]


class PaymentType(StrEnum):
    """How an order is paid. Vouchers are lines of a payment beside it."""

    CREDIT_CARD = "CREDIT_CARD"
    DEBIT_CARD = "DEBIT_CARD"
    BOLETO = "BOLETO"


class CartItem(Struct, frozen=True):
    """A product as its buyer has seen it. `voucher` is for the whole line; so is `freight_value`."""

    seller_id: Id
    product_id: Id
    product_name: str
    unit_price: Cents
    freight_value: Cents
    quantity: Pieces
    voucher: Cents
    version: Version


class Buyer(Struct, frozen=True, kw_only=True):
    """Who submits a checkout, where it goes, and how it is paid. `checkout_id` names one submission: what is sent again
    under the same id is not bought again.
    """

    customer_id: Id
    checkout_id: CheckoutId
    first_name: str
    last_name: str
    street: str
    complement: str
    city: str
    state: str
    zip_code: str
    payment_type: PaymentType
    installments: Annotated[int, Meta(ge=0, le=48)] = 1
    card_number: str = ""
    card_holder_name: str = ""
    card_expiration: str = ""
    card_brand: str = ""


class CustomerCheckout(Buyer, frozen=True, kw_only=True):
    """A buyer as a client sends it. The security number is neither stored nor passed on."""

    card_security_number: str = ""


class ItemStatus(StrEnum):
    """What the stock says to one line of a checkout."""

    RESERVED = "RESERVED"
    UNAVAILABLE = "UNAVAILABLE"
    OUT_OF_STOCK = "OUT_OF_STOCK"


class RequestedItem(CartItem, frozen=True):
    """A line as it is submitted, `unit_price` being what has to be paid now. `price_discount` is for the whole line: by
    how much it would cost more than when it was put into the cart.
    """

    price_discount: Cents = 0


class RefusedItem(Struct, frozen=True):
    """A line that the stock refused. `qty_available`: how many pieces could have been reserved."""

    seller_id: int
    product_id: int
    quantity: int
    version: str
    unit_price: int
    status: ItemStatus
    qty_available: int


class OrderLine(Struct, frozen=True):
    """A line of an order: `total_amount` is `total_items` less `total_incentive`, without freight."""

    order_item_id: int
    seller_id: int
    product_id: int
    product_name: str
    unit_price: int
    freight_value: int
    quantity: int
    total_items: int
    total_incentive: int
    total_amount: int
    version: str


class Invoice(Struct, frozen=True, kw_only=True):
    """An order that waits for its payment."""

    buyer: Buyer
    order_id: int
    invoice_number: str
    issue_date: datetime
    total_invoice: int
    lines: list[OrderLine]


class OrderStatus(StrEnum):
    """How far an order is; only these edges exist: INVOICED to PAYMENT_PROCESSED or PAYMENT_FAILED, and from
    PAYMENT_PROCESSED by READY_FOR_SHIPMENT and IN_TRANSIT to DELIVERED.
    """

    INVOICED = "INVOICED"
    PAYMENT_PROCESSED = "PAYMENT_PROCESSED"
    PAYMENT_FAILED = "PAYMENT_FAILED"
    READY_FOR_SHIPMENT = "READY_FOR_SHIPMENT"
    IN_TRANSIT = "IN_TRANSIT"
    DELIVERED = "DELIVERED"


class ShipmentStatus(StrEnum):
    """How far a shipment is: it begins `approved`."""

    APPROVED = "approved"
    IN_PROGRESS = "delivery_in_progress"
    CONCLUDED = "concluded"


class PackageStatus(StrEnum):
    """How far a package is: it begins `shipped`."""

    SHIPPED = "shipped"
    DELIVERED = "delivered"

"""Copies of the products' prices, for the carts. A copy is an entity with the product's key; only its events change it.

`replica_with` makes the operator, with one of four promises of how a copy follows its product. A checkout asks the copy
and the stock of a product in one call: they have the same key, and so the same slot.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from benchmarks.marketplace import settings
from benchmarks.marketplace.events import ProductChanged, product_changed
from benchmarks.marketplace.services.cart.repricing import reprice_here
from benchmarks.marketplace.services.cart.rows import cart
from benchmarks.marketplace.services.stock.rows import StockAnswer
from benchmarks.marketplace.values import ItemStatus
from styx import Context, Operator


class Replication(StrEnum):
    """How copies follow products.

    TOGETHER: in the transaction that changes the product. SELLER: after it, in one order for all products of a seller,
    so who sees a change sees all earlier ones of that seller. OBJECT: after it, in the order of each product's changes.
    EVENTUAL: after it, and at last the latest.
    """

    TOGETHER = "together"
    SELLER = "seller"
    OBJECT = "object"
    EVENTUAL = "eventual"


class Replica(Struct, array_like=True):
    """What a cart knows of a product. `change` is the product's number of this change."""

    price: int
    version: str
    active: bool
    change: int


class Requested(Struct):
    """What carts and stock know of a product: the copy's price and version, None if there is no copy, and the stock's
    answer to the reservation.
    """

    price: int | None
    version: str | None
    status: ItemStatus
    qty_available: int


def replica_with(replication: Replication) -> Operator[tuple[int, int], Replica]:
    """A new operator whose copies follow the products as `replication` says."""
    replica = Operator("replica", key_type=tuple[int, int], state_type=Replica)
    replica.register(request)
    replica.register(read_only=True)(known)
    if replication is Replication.EVENTUAL:
        replica.register(follow)
        replica.on(product_changed, key=product_of)(relay)
    elif replication is Replication.TOGETHER:
        replica.on(product_changed, key=product_of)(follow)
    else:
        group = seller_of if replication is Replication.SELLER else None
        replica.on(product_changed, key=product_of, after_commit=True, ordered_by=group)(follow)
    return replica


async def request(ctx: Context, quantity: int, version: str) -> Requested:
    """Reserves pieces of this version, and says what they cost by the copy."""
    answer: StockAnswer = await ctx.call("stock", "reserve", ctx.key, (quantity, version))
    copy: Replica | None = await ctx.get()
    if copy is None:
        return Requested(None, None, answer.status, answer.qty_available)
    return Requested(copy.price, copy.version, answer.status, answer.qty_available)


async def known(ctx: Context) -> Replica | None:
    """The copy as it is."""
    copy: Replica | None = await ctx.get()
    return copy


async def follow(ctx: Context, event: ProductChanged) -> None:
    """Takes a change over, unless a later one has come before it."""
    copy: Replica | None = await ctx.get()
    if copy is None or copy.change < event.change:
        await ctx.put(Replica(event.price, event.version, event.active, event.change))
        if settings.REPRICE == "carts":
            of_item = (event.seller_id, event.product_id, event.version, event.price)
            ctx.call_all_async(cart, reprice_here, of_item)


async def relay(ctx: Context, event: ProductChanged) -> None:
    """Has a change taken over after the commit, without an order of its own."""
    ctx.after_commit("replica", "follow", ctx.key, (event,))


def product_of(event: ProductChanged) -> tuple[int, int]:
    """The key of the product, its copy and its stock."""
    return event.seller_id, event.product_id


def seller_of(event: ProductChanged) -> int:
    """The group of all products of a seller."""
    return event.seller_id

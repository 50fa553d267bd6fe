"""A checkout: prices are matched, pieces are reserved, the cart is emptied and an order is placed, in one transaction.

A submission is known by its checkout id. One that comes again changes nothing, and gets the first one's result.
"""

from __future__ import annotations

from typing import Any

from benchmarks.marketplace.answers import CheckoutOutcome, CheckoutResult
from benchmarks.marketplace.errors import EmptyCart, UnknownCustomer, WrongCustomer
from benchmarks.marketplace.events import (
    ReserveStock,
    ReserveStockFailed,
    StockConfirmed,
    TransactionMark,
    reserve_stock,
    reserve_stock_failed,
    stock_confirmed,
    transaction_mark,
)
from benchmarks.marketplace.services.cart.abandoning import retried
from benchmarks.marketplace.services.cart.filling import opened, touched
from benchmarks.marketplace.services.cart.replica import Requested
from benchmarks.marketplace.services.cart.rows import CartItemRow, CheckoutRow, cart, checkouts, items
from benchmarks.marketplace.values import Buyer, CustomerCheckout, ItemStatus, RefusedItem, RequestedItem
from styx import Context


@cart.register
async def checkout(ctx: Context, request: CustomerCheckout) -> CheckoutResult:
    """Buys what is in the cart. Raises `WrongCustomer`, `UnknownCustomer`, `EmptyCart` and `CartClosed`.

    Lines that cannot be reserved are left out of the order, and there is none if that is true of all lines. The cart is
    empty afterwards.
    """
    if request.customer_id != ctx.key:
        raise WrongCustomer(f"customer {request.customer_id} cannot check out the cart of customer {ctx.key}")
    earlier = await ctx.rows(checkouts).get(request.checkout_id)
    if earlier is not None:
        return _result(earlier, repeated=True)
    found, rows = await opened(ctx), await ctx.rows(items).select()
    if not rows:
        raise EmptyCart(f"the cart of customer {ctx.key} is empty")
    if not await ctx.call("customer", "known", ctx.key):
        raise UnknownCustomer(f"there is no customer {ctx.key}")
    await retried(ctx)
    reserved, refused = await _reserve(ctx, buyer_of(request), rows)
    await ctx.rows(items).delete_where()
    await touched(ctx, found)
    return await _end(ctx, buyer_of(request), reserved, refused)


async def _reserve(
    ctx: Context[Any, Any], buyer: Buyer, rows: list[CartItemRow]
) -> tuple[list[RequestedItem], list[RefusedItem]]:
    """The lines that are reserved, at the price that is to be paid, and those that are not."""
    requested, reserved, refused = [], [], []
    for row in rows:
        key = (row.seller_id, row.product_id)
        answer: Requested = await ctx.call("replica", "request", key, (row.quantity, row.version))
        item = matched(row, answer)
        requested.append(item)
        if answer.status == ItemStatus.RESERVED:
            reserved.append(item)
        else:
            refused.append(_refusal(item, answer))
    ctx.emit(reserve_stock, ReserveStock(ctx.now(), buyer, requested))
    return reserved, refused


async def _end(
    ctx: Context[Any, Any], buyer: Buyer, reserved: list[RequestedItem], refused: list[RefusedItem]
) -> CheckoutResult:
    """Places the order, if there is anything to order, and keeps what became of the submission."""
    if reserved:
        ctx.emit(stock_confirmed, StockConfirmed(ctx.now(), buyer, reserved, refused))
        order_id: int | None = await ctx.call("order", "place", ctx.key, (buyer, reserved))
    else:
        order_id = None
        ctx.emit(reserve_stock_failed, ReserveStockFailed(ctx.now(), buyer, refused))
        mark = TransactionMark(buyer.checkout_id, "CUSTOMER_SESSION", ctx.key, "NOT_ACCEPTED", "stock")
        ctx.emit(transaction_mark, mark)
    row = CheckoutRow(buyer.checkout_id, ctx.now(), order_id, refused)
    await ctx.rows(checkouts).insert(row)
    return _result(row, repeated=False)


def matched(row: CartItemRow, answer: Requested) -> RequestedItem:
    """The line at the latest price of its version. What it costs more than when it came to the cart is a discount."""
    same = answer.version == row.version and answer.price is not None
    price = answer.price if same and answer.price is not None else row.unit_price
    return RequestedItem(
        row.seller_id,
        row.product_id,
        row.product_name,
        price,
        row.freight_value,
        row.quantity,
        row.voucher,
        row.version,
        max(0, price - row.added_price) * row.quantity,
    )


def buyer_of(request: CustomerCheckout) -> Buyer:
    """What is kept and passed on of a submission: all but the card's security number."""
    return Buyer(**{name: getattr(request, name) for name in Buyer.__struct_fields__})


def _refusal(item: RequestedItem, answer: Requested) -> RefusedItem:
    return RefusedItem(
        item.seller_id,
        item.product_id,
        item.quantity,
        item.version,
        item.unit_price,
        answer.status,
        answer.qty_available,
    )


def _result(row: CheckoutRow, *, repeated: bool) -> CheckoutResult:
    outcome = CheckoutOutcome.NOT_ACCEPTED if row.order_id is None else CheckoutOutcome.ACCEPTED
    return CheckoutResult(outcome, row.order_id, row.refused, repeated)

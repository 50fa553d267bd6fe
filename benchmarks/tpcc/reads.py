"""The functions by which the audit reads rows, beside the functions of the transactions.

All are declared as read-only. Each reads the rows of several keys that follow each other, in one transaction and by
calls on one slot, so that all rows of a warehouse are read by some thousands of requests. What stands where no row
should stand is looked for as far as a transaction that was undone by halves could have left it: one order, line or
payment beyond the last one.
"""

from __future__ import annotations

from typing import Final

from benchmarks.tpcc.tables import (
    Customer,
    District,
    History,
    Item,
    NewOrder,
    Order,
    OrderLine,
    Row,
    Stock,
    Warehouse,
    customer,
    customer_name,
    customer_order,
    district,
    history,
    item,
    new_order,
    order,
    order_line,
    stock,
    undelivered,
    warehouse,
)
from styx import Context

ORDERS_READ: Final = 100
"""Orders of one request, at up to 18 calls each. All that one request reads stays under 10,000 calls and 1 MiB."""
CUSTOMERS_READ: Final = 100
"""Customers of one request, at up to 25 calls each; a row is up to 900 bytes."""
PAYMENTS_READ: Final = 20
"""Rows of HISTORY that are read together with their customer."""
MORE_PAYMENTS_READ: Final = 500
"""Rows of HISTORY of one request, for those who have paid more often."""
ITEMS_READ: Final = 500
"""Items, or rows of STOCK, of one request."""


class DistrictFound(Row):
    """A district, and its entry in the index of what is not delivered."""

    row: District | None
    undelivered: int | None


class OrderFound(Row):
    """The rows under an order's number. `lines` are those from 1 to the last expected line, and the next one."""

    row: Order | None
    new_order: NewOrder | None
    lines: list[OrderLine | None]


class CustomerFound(Row):
    """A customer, the first of its payments and the one after the last, and its entries in both indexes."""

    row: Customer | None
    payments: list[History | None]
    last_order: int | None
    namesakes: list[int]


@warehouse.register(read_only=True)
async def audit_row(ctx: Context) -> Warehouse | None:
    """This warehouse."""
    row: Warehouse | None = await ctx.get()
    return row


@district.register(read_only=True)
async def audit_found(ctx: Context) -> DistrictFound:
    """This district."""
    return DistrictFound(await ctx.get(), await ctx.call(undelivered, audit_oldest, ctx.key))


@undelivered.register(read_only=True)
async def audit_oldest(ctx: Context) -> int | None:
    """The district's entry."""
    row: int | None = await ctx.get()
    return row


@order.register(read_only=True)
async def audit_orders(ctx: Context, count: int) -> list[OrderFound]:
    """The rows under this number and the next ones, `count` in all."""
    w_id, d_id, first = ctx.key
    return [await ctx.call(order, audit_order, (w_id, d_id, o_id)) for o_id in range(first, first + count)]


@order.register(read_only=True)
async def audit_order(ctx: Context) -> OrderFound:
    """The rows under this number."""
    row: Order | None = await ctx.get()
    lines = []
    for number in range(1, (0 if row is None else row.ol_cnt) + 2):
        lines.append(await ctx.call(order_line, audit_line, (*ctx.key, number)))
    return OrderFound(row, await ctx.call(new_order, audit_new_order, ctx.key), lines)


@order_line.register(read_only=True)
async def audit_line(ctx: Context) -> OrderLine | None:
    """This line."""
    row: OrderLine | None = await ctx.get()
    return row


@new_order.register(read_only=True)
async def audit_new_order(ctx: Context) -> NewOrder | None:
    """This order that is not delivered yet."""
    row: NewOrder | None = await ctx.get()
    return row


@customer.register(read_only=True)
async def audit_customers(ctx: Context, count: int) -> list[CustomerFound]:
    """This customer and those that follow, `count` together."""
    w_id, d_id, first = ctx.key
    return [await ctx.call(customer, audit_customer, (w_id, d_id, c_id)) for c_id in range(first, first + count)]


@customer.register(read_only=True)
async def audit_customer(ctx: Context) -> CustomerFound:
    """This customer."""
    row: Customer | None = await ctx.get()
    payments = []
    for number in range(1, min(0 if row is None else row.payment_cnt, PAYMENTS_READ - 1) + 2):
        payments.append(await ctx.call(history, audit_payment, (*ctx.key, number)))
    namesakes = [] if row is None else await ctx.call(customer_name, audit_namesakes, (*ctx.key[:2], row.last))
    return CustomerFound(row, payments, await ctx.call(customer_order, audit_last_order, ctx.key), namesakes)


@customer_order.register(read_only=True)
async def audit_last_order(ctx: Context) -> int | None:
    """The customer's entry."""
    row: int | None = await ctx.get()
    return row


@customer_name.register(read_only=True)
async def audit_namesakes(ctx: Context) -> list[int]:
    """The name's entry."""
    row: list[int] = await ctx.get([])
    return row


@history.register(read_only=True)
async def audit_payments(ctx: Context, count: int) -> list[History | None]:
    """This payment and those of the same customer that follow, `count` together."""
    w_id, d_id, c_id, first = ctx.key
    found = []
    for number in range(first, first + count):
        found.append(await ctx.call(history, audit_payment, (w_id, d_id, c_id, number)))
    return found


@history.register(read_only=True)
async def audit_payment(ctx: Context) -> History | None:
    """This payment."""
    row: History | None = await ctx.get()
    return row


@stock.register(read_only=True)
async def audit_stocks(ctx: Context, count: int) -> list[Stock | None]:
    """The stock of this item and of those that follow, `count` together."""
    w_id, first = ctx.key
    return [await ctx.call(stock, audit_stock, (w_id, i_id)) for i_id in range(first, first + count)]


@stock.register(read_only=True)
async def audit_stock(ctx: Context) -> Stock | None:
    """The stock of this item."""
    row: Stock | None = await ctx.get()
    return row


@item.register(read_only=True)
async def audit_items(ctx: Context, count: int) -> list[Item | None]:
    """This item and those that follow, `count` together."""
    w_id, first = ctx.key
    return [await ctx.call(item, audit_item, (w_id, i_id)) for i_id in range(first, first + count)]


@item.register(read_only=True)
async def audit_item(ctx: Context) -> Item | None:
    """This item."""
    row: Item | None = await ctx.get()
    return row

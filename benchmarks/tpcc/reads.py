"""The functions by which the audit reads rows, beside the functions of the transactions.

All are declared as read-only. Each reads the rows of several keys that follow each other, in one transaction, so that
all rows of a warehouse are read by some hundreds of requests. Rows are read by their keys, each for itself, and the
indexes are asked beside them, so that the audit sees where they do not agree. What stands where no row should stand is
looked for as far as a transaction that was undone by halves could have left it: one order, line or payment beyond the
last one.
"""

from __future__ import annotations

from typing import Final

from benchmarks.tpcc import tables
from benchmarks.tpcc.tables import Customer, District, History, Item, NewOrder, Order, OrderLine, Row, Stock, Warehouse
from styx import Context

ORDERS_READ: Final = 100
"""Orders of one request, at up to 17 rows each. All that one request reads stays under 10,000 rows and 1 MiB."""
CUSTOMERS_READ: Final = 100
"""Customers of one request, at up to 23 rows each; a row is up to 900 bytes."""
PAYMENTS_READ: Final = 20
"""Rows of HISTORY that are read together with their customer."""
MORE_PAYMENTS_READ: Final = 500
"""Rows of HISTORY of one request, for those who have paid more often."""
ITEMS_READ: Final = 500
"""Items, or rows of STOCK, of one request."""


class DistrictFound(Row):
    """A district, and the first order in its table of what is not delivered; `next_o_id` for none."""

    row: District | None
    undelivered: int | None


class OrderFound(Row):
    """The rows under an order's number. `lines` are those from 1 to the last expected line, and the next one."""

    row: Order | None
    new_order: NewOrder | None
    lines: list[OrderLine | None]


class CustomerFound(Row):
    """A customer, the first of its payments and the one after the last, and what both indexes say of it."""

    row: Customer | None
    payments: list[History | None]
    last_order: int | None
    namesakes: list[int]


@tables.warehouse.register(read_only=True)
async def audit_row(ctx: Context) -> Warehouse | None:
    """This warehouse."""
    row: Warehouse | None = await ctx.get()
    return row


@tables.warehouse.register(read_only=True)
async def audit_stocks(ctx: Context, first: int, count: int) -> list[Stock | None]:
    """The stock of the item `first` and of those that follow, `count` together."""
    rows = ctx.rows(tables.stock)
    return [await rows.get(i_id) for i_id in range(first, first + count)]


@tables.warehouse.register(read_only=True)
async def audit_items(ctx: Context, first: int, count: int) -> list[Item | None]:
    """The item `first` and those that follow, `count` together."""
    rows = ctx.rows(tables.item)
    return [await rows.get(i_id) for i_id in range(first, first + count)]


@tables.district.register(read_only=True)
async def audit_found(ctx: Context) -> DistrictFound:
    """This district."""
    row: District | None = await ctx.get()
    oldest = await ctx.rows(tables.new_order).keys(first=1)
    return DistrictFound(row, oldest[0] if oldest else None if row is None else row.next_o_id)


@tables.district.register(read_only=True)
async def audit_orders(ctx: Context, first: int, count: int) -> list[OrderFound]:
    """The rows under the order number `first` and the next ones, `count` in all."""
    orders, lines, undelivered = ctx.rows(tables.order), ctx.rows(tables.order_line), ctx.rows(tables.new_order)
    found = []
    for o_id in range(first, first + count):
        row = await orders.get(o_id)
        numbers = range(1, (0 if row is None else row.ol_cnt) + 2)
        found.append(OrderFound(row, await undelivered.get(o_id), [await lines.get((o_id, n)) for n in numbers]))
    return found


@tables.district.register(read_only=True)
async def audit_customers(ctx: Context, first: int, count: int) -> list[CustomerFound]:
    """The customer `first` and those that follow, `count` together."""
    return [await _customer(ctx, c_id) for c_id in range(first, first + count)]


async def _customer(ctx: Context, c_id: int) -> CustomerFound:
    customers = ctx.rows(tables.customer)
    row = await customers.get(c_id)
    n_payments = min(0 if row is None else row.payment_cnt, PAYMENTS_READ - 1) + 1
    last_order = await ctx.rows(tables.order).keys(c_id=c_id, last=1)
    return CustomerFound(
        row,
        await _payments(ctx, c_id, 1, n_payments),
        last_order[0] if last_order else None,
        [] if row is None else await customers.keys(last_name=row.last_name),
    )


@tables.district.register(read_only=True)
async def audit_payments(ctx: Context, c_id: int, first: int, count: int) -> list[History | None]:
    """The payment `first` of this customer and those that follow, `count` together."""
    return await _payments(ctx, c_id, first, count)


async def _payments(ctx: Context, c_id: int, first: int, count: int) -> list[History | None]:
    rows = ctx.rows(tables.history)
    return [await rows.get((c_id, number)) for number in range(first, first + count)]

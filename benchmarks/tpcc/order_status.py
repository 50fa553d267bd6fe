"""Order-Status (clause 2.6): a customer's balance and last order. Declared as read-only."""

from __future__ import annotations

from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import OrderStatusAnswer, StatusLine
from benchmarks.tpcc.rows import there
from styx import Context


class OrderShown(tables.Row):
    """An order as its customer sees it."""

    entry_d: int
    carrier_id: int | None
    lines: list[StatusLine]


@tables.customer.register(read_only=True)
async def order_status(ctx: Context) -> OrderStatusAnswer:
    """This customer and their last order."""
    key = w_id, d_id, c_id = ctx.key
    customer: tables.Customer = there(ctx, "customer", await ctx.get())
    o_id: int = await ctx.call(tables.customer_order, last_order, key)
    order: OrderShown = await ctx.call(tables.order, show, (w_id, d_id, o_id))
    return OrderStatusAnswer(
        c_id,
        customer.first,
        customer.middle,
        customer.last,
        customer.balance,
        o_id,
        order.entry_d,
        order.carrier_id,
        order.lines,
    )


@tables.customer_order.register(read_only=True)
async def last_order(ctx: Context) -> int:
    """The number of this customer's last order."""
    o_id: int = there(ctx, "order of customer", await ctx.get())
    return o_id


@tables.order.register(read_only=True)
async def show(ctx: Context) -> OrderShown:
    """This order and its lines."""
    order: tables.Order = there(ctx, "order", await ctx.get())
    key = ctx.key
    lines = [await ctx.call(tables.order_line, show_line, (*key, n)) for n in range(1, order.ol_cnt + 1)]
    return OrderShown(order.entry_d, order.carrier_id, lines)


@tables.order_line.register(read_only=True)
async def show_line(ctx: Context) -> StatusLine:
    """This line of an order."""
    line: tables.OrderLine = there(ctx, "order line", await ctx.get())
    return StatusLine(line.i_id, line.supply_w_id, line.quantity, line.amount, line.delivery_d)

"""Order-Status (clause 2.6): a customer's balance and last order. Declared as read-only."""

from __future__ import annotations

from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import OrderStatusAnswer, StatusLine
from benchmarks.tpcc.customers import customer_of
from benchmarks.tpcc.rows import there
from styx import Context


@tables.district.register(read_only=True)
async def order_status(ctx: Context, who: int | str) -> OrderStatusAnswer:
    """This district's customer `who`, a number or a last name, and their last order."""
    customer = await customer_of(ctx, who)
    c_id = customer.c_id
    last = await ctx.rows(tables.order).select(c_id=c_id, last=1)
    order = there(ctx, "order of customer", last[0] if last else None, c_id)
    lines = await ctx.rows(tables.order_line).select(o_id=order.o_id)
    return OrderStatusAnswer(
        c_id,
        customer.first_name,
        customer.middle,
        customer.last_name,
        customer.balance,
        order.o_id,
        order.entry_d,
        order.carrier_id,
        [StatusLine(line.i_id, line.supply_w_id, line.quantity, line.amount, line.delivery_d) for line in lines],
    )

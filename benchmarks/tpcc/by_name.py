"""Customers who are known by their last name (clauses 2.5.2.2 and 2.6.2.2): the index passes the call on. Among several
customers with the name it takes the middle one, in the order of their first names.
"""

from __future__ import annotations

from benchmarks.tpcc import order_status as by_number
from benchmarks.tpcc import payment, tables
from benchmarks.tpcc.answers import OrderStatusAnswer, PaidCustomer
from benchmarks.tpcc.rows import there
from styx import Context


@tables.customer_name.register
async def pay(ctx: Context, w_id: int, d_id: int, h_data: str, amount: int) -> PaidCustomer:
    """See `pay` of the customer."""
    customer = middle_one(ctx, await ctx.get())
    paid: PaidCustomer = await ctx.call(tables.customer, payment.pay, customer, (w_id, d_id, h_data, amount))
    return paid


@tables.customer_name.register(read_only=True)
async def order_status(ctx: Context) -> OrderStatusAnswer:
    """See `order_status` of the customer."""
    customer = middle_one(ctx, await ctx.get())
    answer: OrderStatusAnswer = await ctx.call(tables.customer, by_number.order_status, customer)
    return answer


def middle_one(ctx: Context, numbers: list[int] | None) -> tuple[int, int, int]:
    """The customer's key: the one at position n/2, rounded up, of the n of the name that `ctx` is at."""
    w_id, d_id, _ = ctx.key
    namesakes = there(ctx, "customer named", numbers)
    return w_id, d_id, namesakes[(len(namesakes) - 1) // 2]

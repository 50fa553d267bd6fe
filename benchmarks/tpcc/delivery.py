"""Delivery (clause 2.7): of each district of a warehouse, the oldest order that is not delivered yet.

All districts are one transaction. One that has no such order is skipped. All rows are of one warehouse, so a delivery
can be local.
"""

from __future__ import annotations

from benchmarks.tpcc import tables
from benchmarks.tpcc.rows import now_us, there
from styx import Context


@tables.warehouse.register
async def delivery(ctx: Context, carrier_id: int) -> list[int | None]:
    """Delivers one order of each district. Returns each order's number, or None for a district without such an
    order.
    """
    return await _deliver(ctx, carrier_id)


@tables.warehouse.register(local=True)
async def local_delivery(ctx: Context, carrier_id: int) -> list[int | None]:
    """As `delivery`."""
    return await _deliver(ctx, carrier_id)


async def _deliver(ctx: Context, carrier_id: int) -> list[int | None]:
    districts = range(1, tables.DISTRICTS + 1)
    return [await ctx.call(tables.undelivered, deliver_oldest, (ctx.key, d), (carrier_id,)) for d in districts]


@tables.undelivered.register
async def deliver_oldest(ctx: Context, carrier_id: int) -> int | None:
    """Delivers this district's oldest order, whose number is returned, if there is one."""
    w_id, d_id = ctx.key
    o_id: int = there(ctx, "index of undelivered orders", await ctx.get())
    if not await ctx.call(tables.new_order, dequeue, (w_id, d_id, o_id)):
        return None
    await ctx.put(o_id + 1)
    ctx.call_async(tables.order, hand_over, (w_id, d_id, o_id), (carrier_id,))
    return o_id


@tables.new_order.register
async def dequeue(ctx: Context) -> bool:
    """Deletes this order from those to be delivered; False if it is not among them."""
    if await ctx.get() is None:
        return False
    await ctx.delete()
    return True


@tables.order.register
async def hand_over(ctx: Context, carrier_id: int) -> None:
    """Gives this order to the carrier, and charges its customer for it."""
    w_id, d_id, o_id = ctx.key
    order: tables.Order = there(ctx, "order", await ctx.get())
    order.carrier_id = carrier_id
    await ctx.put(order)
    amount = 0
    for number in range(1, order.ol_cnt + 1):
        amount += await ctx.call(tables.order_line, deliver_line, (w_id, d_id, o_id, number))
    ctx.call_async(tables.customer, charge, (w_id, d_id, order.c_id), (amount,))


@tables.order_line.register
async def deliver_line(ctx: Context) -> int:
    """This line is delivered now; its amount in cents."""
    line: tables.OrderLine = there(ctx, "order line", await ctx.get())
    line.delivery_d = now_us(ctx)
    await ctx.put(line)
    return line.amount


@tables.customer.register
async def charge(ctx: Context, amount: int) -> None:
    """This customer owes `amount` cents more, for an order that is delivered."""
    customer: tables.Customer = there(ctx, "customer", await ctx.get())
    customer.balance += amount
    customer.delivery_cnt += 1
    await ctx.put(customer)

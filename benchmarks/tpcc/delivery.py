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
    return [await ctx.call(tables.district, deliver_oldest, (ctx.key, d), (carrier_id,)) for d in districts]


@tables.district.register
async def deliver_oldest(ctx: Context, carrier_id: int) -> int | None:
    """Delivers this district's oldest order, whose number is returned, if there is one, and charges its customer."""
    undelivered = ctx.rows(tables.new_order)
    oldest = await undelivered.keys(first=1)
    if not oldest:
        return None
    o_id: int = oldest[0]
    await undelivered.delete(o_id)
    orders = ctx.rows(tables.order)
    order = there(ctx, "order", await orders.get(o_id), o_id)
    order.carrier_id = carrier_id
    await orders.put(order)
    await _charge(ctx, order.c_id, await _deliver_lines(ctx, o_id))
    return o_id


async def _deliver_lines(ctx: Context, o_id: int) -> int:
    """The lines of this order are delivered now; their amount in cents."""
    lines = await ctx.rows(tables.order_line).update_where({"delivery_d": now_us(ctx)}, o_id=o_id)
    return sum([line.amount for line in lines])


async def _charge(ctx: Context, c_id: int, amount: int) -> None:
    """This customer owes `amount` cents more, for an order that is delivered."""
    rows = ctx.rows(tables.customer)
    customer = there(ctx, "customer", await rows.get(c_id), c_id)
    customer.balance += amount
    customer.delivery_cnt += 1
    await rows.put(customer)

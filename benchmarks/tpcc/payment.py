"""Payment (clause 2.5): a customer pays at a district of some warehouse, and says who they are by number or last name.

The customer is of another warehouse now and then; a terminal knows its own, and sends all other payments as local ones.
The row of HISTORY is written where the customer is. What goes there
is of the request or never changes: a balance of the warehouse that is paid at must not go along.
"""

from __future__ import annotations

from typing import Final

from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import PaidCustomer, PaymentAnswer
from benchmarks.tpcc.customers import customer_of
from benchmarks.tpcc.rows import now_us, there
from styx import Context

BAD_CREDIT: Final = "BC"
DATA_MAX: Final = 500
"""Characters that a customer's data are cut to."""
DATA_SHOWN: Final = 200
"""Characters of it that a terminal shows."""


@tables.warehouse.register
async def payment(ctx: Context, d_id: int, c_w_id: int, c_d_id: int, who: int | str, amount: int) -> PaymentAnswer:
    """Takes `amount` cents at this warehouse and district `d_id` from the customer `who`, a number or a last name."""
    return await _take(ctx, d_id, c_w_id, c_d_id, who, amount)


@tables.warehouse.register(local=True)
async def local_payment(
    ctx: Context, d_id: int, c_w_id: int, c_d_id: int, who: int | str, amount: int
) -> PaymentAnswer:
    """As `payment`, of a customer of this warehouse."""
    return await _take(ctx, d_id, c_w_id, c_d_id, who, amount)


async def _take(ctx: Context, d_id: int, c_w_id: int, c_d_id: int, who: int | str, amount: int) -> PaymentAnswer:
    w_id: int = ctx.key
    warehouse: tables.Warehouse = there(ctx, "warehouse", await ctx.get())
    warehouse.ytd += amount
    await ctx.put(warehouse)
    d_name: str = await ctx.call(tables.district, take_in, (w_id, d_id), (amount,))
    h_data = f"{warehouse.name}    {d_name}"
    customer: PaidCustomer = await ctx.call(tables.district, pay, (c_w_id, c_d_id), (who, w_id, d_id, h_data, amount))
    return PaymentAnswer(warehouse.name, d_name, now_us(ctx), customer)


@tables.district.register
async def take_in(ctx: Context, amount: int) -> str:
    """Adds `amount` cents to what this district has been paid; D_NAME."""
    district: tables.District = there(ctx, "district", await ctx.get())
    district.ytd += amount
    await ctx.put(district)
    return district.name


@tables.district.register
async def pay(ctx: Context, who: int | str, w_id: int, d_id: int, h_data: str, amount: int) -> PaidCustomer:
    """Takes `amount` cents off what this district's customer `who` owes, paid at district `d_id` of warehouse
    `w_id`.
    """
    c_w_id, c_d_id = ctx.key
    customer = await customer_of(ctx, who)
    c_id = customer.c_id
    customer.balance -= amount
    customer.ytd_payment += amount
    customer.payment_cnt += 1
    shown = ""
    if customer.credit == BAD_CREDIT:
        note = f"{c_id} {c_d_id} {c_w_id} {d_id} {w_id} {amount / 100:.2f} | "
        customer.data = (note + customer.data)[:DATA_MAX]
        shown = customer.data[:DATA_SHOWN]
    await ctx.rows(tables.customer).put(customer)
    await ctx.rows(tables.history).put(
        tables.HistoryRow(w_id, d_id, now_us(ctx), amount, h_data, c_id, customer.payment_cnt)
    )
    return PaidCustomer(
        c_id,
        customer.first_name,
        customer.middle,
        customer.last_name,
        customer.credit,
        customer.discount,
        customer.balance,
        customer.payment_cnt,
        shown,
    )

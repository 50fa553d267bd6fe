"""A district's customer, who is known by a number or a last name (clauses 2.5.2.2 and 2.6.2.2)."""

from __future__ import annotations

from benchmarks.tpcc import tables
from benchmarks.tpcc.rows import there
from styx import Context


async def customer_of(ctx: Context, who: int | str) -> tables.CustomerRow:
    """The customer of this number; among those of a last name the one at position n/2, rounded up, in the order of
    their first names.
    """
    rows = ctx.rows(tables.customer)
    if isinstance(who, int):
        return there(ctx, "customer", await rows.get(who), who)
    namesakes = await rows.keys(last_name=who)
    c_id = namesakes[(len(namesakes) - 1) // 2] if namesakes else 0
    return there(ctx, "customer named", await rows.get(c_id), who)

"""The function of both operators by which the driver loads rows."""

from __future__ import annotations

from typing import Any

import msgspec

from benchmarks.driver.loading import LOAD_ROWS
from benchmarks.tpcc import tables
from styx import Context


async def load_rows(ctx: Context, table: str, rows: list[Any]) -> None:
    """Puts these rows of this entity's table of that name."""
    declared: Any = tables.BY_NAME[table]
    there: Any = ctx.rows(declared)
    for row in rows:
        await there.put(msgspec.convert(row, declared.row_type.declared))


assert load_rows.__name__ == LOAD_ROWS
for operator in (tables.warehouse, tables.district):
    operator.register(load_rows)

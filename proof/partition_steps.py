"""Steps on a whole partition, for the programs of `proof.chaos_app`: what ["all", mode, operator index, steps] runs.

They work on the rows of `proof.row_steps`, of all entities of the partition, by a partition-wide index: it looks in a
shelf, and orders by rank, entity and id. A sweep has a register of its own, which is its result.

    ["scan", t, shelf, low, high, first, last]  register = the rows in one number, where order matters
    ["ids", t, shelf, low, high, first, last]   register = their entities and ids in one number
    ["count", t, shelf, low, high]              register = how many rows there are; with t = 0 also what a view has of
                                                the shelf
    ["bump", t, shelf, low, high]               each of them gets the next rank
    ["purge", t, shelf, low, high]              removes each of them
    ["visit", mode, n, p]                       runs program p on the operator's entity number n, if it is here;
                                                "stray": whether it is here or not, which ends the transaction
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

from proof.row_steps import MODULUS, RANKS, TABLES, group_number
from styx.model.partition_context import PartitionContext
from styx.model.table_names import row_table
from styx.relational.conditions import between

SWEEPS: Final = frozenset({"scan", "ids", "count", "bump", "purge"})


class Sweep:
    """One invocation on a partition; `keys` are keys of the operator's entities by number."""

    def __init__(self, ctx: PartitionContext, keys: list[Any], register: int) -> None:
        self._ctx = ctx
        self._keys = keys
        self.register = register

    async def run(self, steps: list[Any]) -> None:
        """Runs the steps one after the other."""
        for name, *operands in steps:
            if name in SWEEPS:
                await self._sweep(name, *operands)
            else:
                await self._visit(*operands)

    async def _sweep(self, name: str, t: int, shelf: int, low: int, high: int, first: int = 0, last: int = 0) -> None:
        ctx = self._ctx
        table = ctx._context._env.app.table(row_table(ctx.operator, TABLES[t]))
        assert table is not None
        rows, asked = ctx.rows(table), {"shelf": shelf, "rank": between(low, high - 1)}
        if name == "count":
            self.register = await rows.count(**asked)
            if t == 0:
                groups: Any = ctx.rows(table.views[2].table)
                self.register += group_number(await groups.get(shelf))
        elif name == "ids":
            self._add(await rows.keys(first=first, last=last, **asked))
        elif name == "scan":
            found = await rows.select(first=first, last=last, **asked)
            self._add([(key, row.id, row.shelf, row.rank, row.tag) for key, row in found])
        elif name == "bump":
            for key, row in await rows.select(**asked):
                await ctx.rows(table, of=key).update(row.id, rank=(row.rank + 1) % RANKS)
        else:
            for key, id in await rows.keys(**asked):
                await ctx.rows(table, of=key).delete(id)

    def _add(self, found: list[Any]) -> None:
        self.register = len(found)
        for each in found:
            self.register = (self.register * 31 + crc32(repr(each).encode())) % MODULUS

    async def _visit(self, mode: str, n: int, steps: list[Any]) -> None:
        key = self._keys[n]
        if mode != "stray" and not self._ctx.holds(key):
            return
        if mode == "async":
            self._ctx.call_async(self._ctx.operator, "run", key, (steps,))
        else:
            self.register = await self._ctx.call(self._ctx.operator, "run", key, (steps,))

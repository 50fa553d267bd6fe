"""Steps on a whole partition, for the programs of `proof.chaos_app`: what ["all", mode, operator index, steps] runs.

They work on the rows of `proof.row_steps`, of all entities of the partition, by a partition-wide index: it looks in a
shelf, and orders by rank, entity and id. A sweep has a register of its own, which is its result.

    ["scan", t, shelf, low, high, first, last]  register = the rows in one number, where order matters
    ["ids", t, shelf, low, high, first, last]   register = their entities and ids in one number
    ["count", t, shelf, low, high]              register = how many rows there are
    ["bump", t, shelf, low, high]               each of them gets the next rank
    ["purge", t, shelf, low, high]              removes each of them
    ["visit", mode, n, p]                       runs program p on the operator's entity number n, if it is here
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final
from zlib import crc32

import msgspec

from proof.row_steps import MODULUS, RANKS, TABLES, Row
from styx.model.operator import Operator
from styx.model.partition_context import PartitionContext
from styx.model.table_names import row_table
from styx.relational.index_range import IndexRange, RowKey
from styx.relational.partition_index import PartitionIndex
from styx.relational.row_type import RowType

SWEEPS: Final = frozenset({"scan", "ids", "count", "bump", "purge"})
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Row).decode


@cache
def _index(operator: Operator, table: int) -> PartitionIndex:
    name = row_table(operator.name, TABLES[table])
    columns = RowType(name, Row).columns
    parts = len(operator.key_type.parts) or 1
    equal, order = (columns["shelf"],), (columns["rank"],)
    return PartitionIndex(name, 2, "across", parts, equal, order, _decode, operator.key_space.partition_of_flat)


class Sweep:
    """One invocation on a partition; `operator` is the one of the app, `keys` its entities by number."""

    def __init__(self, ctx: PartitionContext, operator: Operator, keys: list[Any], register: int) -> None:
        self._ctx = ctx
        self._operator = operator
        self._keys = keys
        self.register = register

    async def run(self, steps: list[Any]) -> None:
        """Runs the steps one after the other."""
        for name, *operands in steps:
            if name in SWEEPS:
                self._sweep(name, *operands)
            else:
                await self._visit(*operands)

    def _sweep(self, name: str, t: int, shelf: int, low: int, high: int, first: int = 0, last: int = 0) -> None:
        context, number = self._ctx._context, self._ctx.partition
        index, membership = _index(self._operator, t), name not in ("scan", "bump")
        wanted = IndexRange(index, (number, shelf), (low,), (high,), membership, first, last)
        if name == "count":
            self.register = context._cell.count(context._env, wanted, context._chain)
            return
        found = context._cell.scan(context._env, wanted, context._chain)
        if name in ("bump", "purge"):
            if context._spec.read_only:
                raise context._violation("rows")
            for key, data in found:
                self._write(index.table, key, None if name == "purge" else _next(_decode(data)))
            return
        self.register = len(found)
        for key, data in found:
            self.register = (self.register * 31 + crc32(repr(key).encode())) % MODULUS
            if name == "scan":
                self.register = (self.register * 7 + _decode(data).rank) % MODULUS

    def _write(self, table: str, key: RowKey, row: Row | None) -> None:
        context = self._ctx._context
        cell = context._cell.sibling(context._env, table, key)
        cell.write(context._chain, None if row is None else _encode(row))

    async def _visit(self, mode: str, n: int, steps: list[Any]) -> None:
        key = self._keys[n]
        if not self._ctx.holds(key):
            return
        if mode == "async":
            self._ctx.call_async(self._operator.name, "run", key, (steps,))
        else:
            self.register = await self._ctx.call(self._operator.name, "run", key, (steps,))


def _next(row: Row) -> Row:
    return Row(row.shelf, (row.rank + 1) % RANKS)

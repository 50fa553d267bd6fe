"""A context over a plain dictionary, for tests of rows without an engine: one transaction, which sees what it wrote."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import styx
from styx.model.cell import Cell, Environment
from styx.model.context import Context
from styx.model.limits import Limits
from styx.native.compiled import transaction_limits
from styx.relational.index_range import IndexRange, RowKey

Entries = dict[tuple[str, Any], bytes]


class DictionaryCell(Cell):
    """An entry of the dictionary; a range is read by looking at all rows."""

    def __init__(self, entries: Entries, ranges: list[IndexRange], table: str, key: Any) -> None:
        self.entries = entries
        self.ranges = ranges
        self.at = (table, key)

    def read(self, chain: bytes) -> bytes | None:
        return self.entries.get(self.at)

    def write(self, chain: bytes, value: bytes | None) -> None:
        if value is None:
            self.entries.pop(self.at, None)
        else:
            self.entries[self.at] = value

    def sibling(self, environment: Environment, table: str, key: Any) -> Cell:
        return DictionaryCell(self.entries, self.ranges, table, key)

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        self.ranges.append(wanted)
        found = []
        for (table, key), data in self.entries.items():
            if table == wanted.index.table:
                entry = wanted.index.entry(key, data, environment.n_slots)
                if entry is not None and entry[0] == wanted.group and wanted.low <= entry[1] < wanted.high:
                    found.append((entry[1], key, data))
        rows = [(key, data) for _, key, data in sorted(found, key=lambda each: each[0])]
        if wanted.last:
            return rows[-wanted.last :]
        return rows[: wanted.first] if wanted.first else rows

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        return len(self.scan(environment, wanted, chain))


class MemoryEnvironment(Environment):
    """One transaction of a deployment with four slots."""

    def __init__(self, app: styx.App, limits: Limits | None = None) -> None:
        self.app = app
        self.limits = transaction_limits(limits or Limits())
        self.n_slots = 4
        self.tid = 7
        self.timestamp_us = 1_700_000_000_000_000


class Memory:
    """The entities of one app. `context` gives a new function call's; `ranges` are the ranges that were read."""

    def __init__(self, *operators: Any, limits: Limits | None = None) -> None:
        self.environment = MemoryEnvironment(styx.App("shop", operators), limits)
        self.entries: Entries = {}
        self.ranges: list[IndexRange] = []

    def context(self, operator: Any, key: Any = 1, *, read_only: bool = False) -> Any:
        async def function(ctx: Any) -> None:
            pass

        from styx.model.function_spec import Hints

        spec = operator.spec("function", function, Hints(read_only=read_only))
        cell = DictionaryCell(self.entries, self.ranges, operator.name, key)
        operations = self.environment.limits.operations_max
        return Context(key, self.environment, spec, cell, b"", b"", operations)


def done(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a method that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")

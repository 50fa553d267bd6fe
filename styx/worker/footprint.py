"""A transaction's footprint on one slot in one epoch: which entities it touched, by which branch, and what it wrote.

The visibility rule lives here. A function sees the epoch's starting state, the writes of its own synchronous
chain and those of the chains above it in the call graph; never those of a concurrent branch, whose arrival is
chance. Two concurrent branches on one entity, one of them writing, *collide*. Never changes the slot's state.
Paper section 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from styx.app import App
from styx.context import PATH_STEP_BYTES, ExternalCall
from styx.limits import Limits
from styx.partitioning import Key

if TYPE_CHECKING:
    from styx.worker.invocation import Invocation

SEQUENTIAL_CHAIN = b""
"""Visibility chain of a transaction in sequential mode: every branch sees everything before it."""


class EntityCell:
    """One entity as one transaction sees it in the execution step."""

    __slots__ = ("footprint", "key", "table", "touched", "values")

    def __init__(self, footprint: Footprint, table: dict[Any, bytes], key: Any) -> None:
        self.footprint = footprint
        self.table = table
        self.key = key
        self.touched: list[bytes] = []
        self.values: dict[bytes, bytes | None] | None = None

    def read(self, chain: bytes) -> bytes | None:
        """The latest value visible to `chain`."""
        touched = self.touched
        if not touched:
            touched.append(chain)
        elif not self.footprint.collided and chain not in touched:
            self._touch(chain)
        values = self.values
        if values is None:
            return self.table.get(self.key)
        if chain in values:
            return values[chain]
        # Up the chains above, not through all writers: thousands of branches may write here.
        for end in range(len(chain) - PATH_STEP_BYTES, -1, -PATH_STEP_BYTES):
            if chain[:end] in values:
                return values[chain[:end]]
        return self.table.get(self.key)

    def write(self, chain: bytes, value: bytes | None) -> None:
        """Makes `value` (None: deleted) visible to `chain` and the chains below it."""
        touched = self.touched
        if not touched:
            touched.append(chain)
        elif not self.footprint.collided and chain not in touched:
            self._touch(chain)
        values = self.values
        if values is None:
            values = self.values = {}
        if (
            len(touched) > 1
            and not self.footprint.collided
            and chain not in values
            and any(_concurrent(chain, other) for other in touched)
        ):
            self.footprint.collided = True
        values[chain] = value

    def put_all(self, operator: str, values: dict[Key, bytes], replace: bool) -> Key | None:
        """As `Cell.put_all`; all of them count as touched, found or not."""
        self.footprint.bulk = BulkWrites(operator, values)
        table = self.table
        if replace or table.keys().isdisjoint(values):
            return None
        return next(key for key in values if key in table)

    def _touch(self, chain: bytes) -> None:
        self.touched.append(chain)
        if self.values is not None and any(_concurrent(chain, writer) for writer in self.values):
            self.footprint.collided = True

    def final_value(self) -> bytes | None:
        """What the transaction leaves here: without a collision all writers are on one line, the lowest is the last."""
        assert self.values is not None
        return self.values[max(self.values, key=len)]


class BulkWrites(NamedTuple):
    """What a bulk load writes on its slot: states by key, without a cell for each of thousands of entities."""

    operator: str
    values: dict[Any, bytes]

    def entities(self) -> Iterator[tuple[str, Any]]:
        """(operator, key) of each."""
        return zip(repeat(self.operator), self.values, strict=False)


def _concurrent(a: bytes, b: bytes) -> bool:
    """Neither chain is above the other in the call graph (a chain's id is the path of its outermost function)."""
    return not a.startswith(b) and not b.startswith(a)


class Footprint:
    """One transaction on one slot; also the `Environment` of its contexts there.

    `invocations` is the cached call graph of this slot, by call path. `dead`: the transaction left the epoch, whatever
    still arrives for it is void. `sent` counts the asynchronous calls that left from here. `pending_external`: the
    outside call it has to wait for. `bulk`: the entities of a bulk load, which has no cells that count.
    """

    __slots__ = (
        "app",
        "bulk",
        "cells",
        "collided",
        "dead",
        "externals",
        "invocations",
        "limits",
        "n_slots",
        "pending_external",
        "root_slot",
        "sent",
        "sequential",
        "slot",
        "tid",
        "timestamp_us",
    )

    def __init__(
        self,
        app: App,
        limits: Limits,
        n_slots: int,
        tid: int,
        timestamp_us: int,
        slot: int,
        root_slot: int,
        sequential: bool,
        externals: dict[bytes, bytes] | None,
    ) -> None:
        self.app = app
        self.limits = limits
        self.n_slots = n_slots
        self.tid = tid
        self.timestamp_us = timestamp_us
        self.slot = slot
        self.root_slot = root_slot
        self.sequential = sequential
        self.externals = externals
        self.cells: dict[tuple[str, Any], EntityCell] = {}
        self.bulk: BulkWrites | None = None
        self.invocations: dict[bytes, Invocation] = {}
        self.collided = False
        self.sent = 0
        self.dead = False
        self.pending_external: ExternalCall | None = None

    @property
    def spread(self) -> bool:
        """The transaction has work on another slot as well, so that its end is not decided here alone."""
        return self.root_slot != self.slot or any(
            call.slot != self.slot for invocation in self.invocations.values() for call in invocation.calls
        )

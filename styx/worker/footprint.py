"""A transaction's footprint on one slot in one epoch: which entities it touched, by which branch, and what it wrote.

The visibility rule lives here. A function sees the epoch's starting state, the writes of its own synchronous chain and
those of the chains above it in the call graph; never those of a concurrent branch, whose order of arrival is chance.
Two concurrent branches on one entity, one of them writing, *collide*. Paper section 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from styx.model.access import Access
from styx.model.agenda import FIRST_RUN, LOCAL_PART, LOCK_PHASE
from styx.model.app import App
from styx.model.cell import Cell, Environment
from styx.model.context import PATH_STEP_BYTES
from styx.model.function_log import Line, Lines
from styx.model.waiting import ExternalCall
from styx.native.compiled import TransactionLimits
from styx.native.interpreted import native, plain_stores
from styx.relational.increment import Increment
from styx.relational.index_range import TOP, Group, IndexRange, Position, RowKey, TableIndex
from styx.state.table import Reader
from styx.worker.chains import concurrent
from styx.worker.range_read import count_range, range_that_was_read, read_range, rows_of
from styx.worker.transaction_rows import TransactionRows

if TYPE_CHECKING:
    from styx.worker.invocation import Invocation
    from styx.worker.local_cells import LocalCells
    from styx.worker.notes import Raised
    from styx.worker.slot import Slot

Writes = dict[tuple[str, Any], bytes | None]
"""Encoded states by (table, key); None: deleted."""


@native
@plain_stores
class EntityCell(msgspec.Struct, Cell, eq=False, gc=False):
    """One entity as one transaction sees it in the execution step.

    `found` reads the state at the epoch's beginning. `chain` is the first branch that touched the entity, None before.
    `written`: some branch has written. While there is one branch, `value` is its write. From the second branch on,
    `touched` are all branches and `values` their writes.
    """

    footprint: Footprint
    key: Any
    found: Reader
    chain: bytes | None = None
    written: bool = False
    value: bytes | None = None
    touched: list[bytes] | None = None
    values: dict[bytes, bytes | None] | None = None

    def read(self, chain: bytes) -> bytes | None:
        """The latest value visible to `chain`."""
        mine = self.chain
        if mine is None:
            self.chain = chain
            return self.found(self.key)
        if mine == chain and self.touched is None:
            return self.value if self.written else self.found(self.key)
        return self._read_shared(chain)

    def write(self, chain: bytes, value: bytes | None) -> None:
        """Makes `value` (None: deleted) visible to `chain` and the chains below it."""
        mine = self.chain
        if mine is None:
            self.chain = chain
        elif mine != chain or self.touched is not None:
            self._write_shared(chain, value)
            return
        self.value = value
        self.written = True

    def _read_shared(self, chain: bytes) -> bytes | None:
        touched, values = self._shared()
        if not self.footprint.collided and chain not in touched:
            touched.append(chain)
            if any(concurrent(chain, writer) for writer in values):
                self.footprint.collided = True
        if chain in values:
            return values[chain]
        # Walks up the chains above, not through all writers, because thousands of branches may write here.
        for end in range(len(chain) - PATH_STEP_BYTES, -1, -PATH_STEP_BYTES):
            if chain[:end] in values:
                return values[chain[:end]]
        return self.found(self.key)

    def _write_shared(self, chain: bytes, value: bytes | None) -> None:
        touched, values = self._shared()
        if not self.footprint.collided and chain not in touched:
            touched.append(chain)
        if not self.footprint.collided and chain not in values and any(concurrent(chain, other) for other in touched):
            self.footprint.collided = True
        values[chain] = value
        self.written = True

    def _shared(self) -> tuple[list[bytes], dict[bytes, bytes | None]]:
        if self.touched is None or self.values is None:
            assert self.chain is not None
            self.touched = [self.chain]
            self.values = {self.chain: self.value} if self.written else {}
        return self.touched, self.values

    def access(self, access: Access) -> Any:
        """As `Cell.access`."""
        footprint = self.footprint
        if footprint.accesses is None:
            footprint.accesses = []
        footprint.accesses.append(access)
        return access.result(self.found)

    def sibling(self, environment: Environment, table: str, key: Any) -> Cell:
        """As `Cell.sibling`."""
        footprint = self.footprint
        slot = footprint.here
        assert slot is not None, "a transaction without a slot has no state"
        return slot.cell(footprint, table, key)

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        """As `Cell.scan`."""
        footprint = self.footprint
        slot, rows = footprint.here, footprint.rows_here()
        assert slot is not None, "a transaction without a slot has no state"
        found = read_range(slot, wanted, footprint.n_slots, (rows.seen(wanted, chain),))
        footprint.has_read(chain, range_that_was_read(wanted, found))
        return rows_of(found)

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        """As `Cell.count`."""
        footprint = self.footprint
        slot, rows = footprint.here, footprint.rows_here()
        assert slot is not None, "a transaction without a slot has no state"
        found = count_range(slot, wanted, footprint.n_slots, (rows.seen(wanted, chain),))
        footprint.has_read(chain, wanted)
        return found

    def has(
        self, environment: Environment, primary: TableIndex, entity: Group, position: Position, chain: bytes
    ) -> bool:
        """As `Cell.has`. A chain that asks again looks again, since the row may have come or gone; but its range has
        been read already.
        """
        footprint, table, key = self.footprint, primary.table, entity + position
        slot, rows = footprint.here, footprint.rows_here()
        assert slot is not None, "a transaction without a slot has no state"
        if rows.asks_first(chain, table, key):
            footprint.has_read(chain, IndexRange(primary, entity, position, (*position, TOP), True))
        cells = rows.written.get(table)
        cell = None if cells is None else cells.get(key)
        if cell is not None:
            return cell.looked_at(chain) is not None
        found = slot.found.get(table) or slot.find(table)
        return found(key) is not None

    def final_value(self) -> bytes | None:
        """The value that the transaction leaves. Without a collision all writers are on one line of calls, and the
        lowest wrote last.
        """
        values = self.values
        return self.value if values is None else values[max(values, key=len)]


@native
@plain_stores
class RowCell(EntityCell, eq=False, gc=False):
    """One row of a table as one transaction sees it in the execution step: a cell whose writes queries see.

    `overwritten` are the values that a branch wrote and then wrote over.
    """

    table: str = ""
    overwritten: list[bytes | None] | None = None

    def write(self, chain: bytes, value: bytes | None) -> None:
        """As `EntityCell.write`."""
        if self.written:
            self._keep(chain)
        EntityCell.write(self, chain, value)
        footprint = self.footprint
        if footprint.rows_here().wrote(chain, self):
            footprint.collided = True

    def add(self, chain: bytes, increment: Increment) -> bool:
        """As `Cell.add`. From here on an `IncrementedRow` has the cell's place."""
        slot = self.footprint.here
        assert slot is not None, "a transaction without a slot has no state"
        return slot.incremented_row(self).add(chain, increment)

    def images(self) -> list[bytes | None]:
        """The row's value at the epoch's beginning, and all that branches have written.

        What a branch has written over counts as well. Otherwise a query of another branch would collide with it only if
        it came between the two writes, and the order of arrival would decide.
        """
        before = self.found(self.key)
        images = [before, self.value] if self.values is None else [before, *self.values.values()]
        return images if self.overwritten is None else images + self.overwritten

    def _keep(self, chain: bytes) -> None:
        """Keeps what the branch wrote last, which it is about to write over."""
        values = self.values
        if values is None:
            if self.chain != chain:
                return
            last = self.value
        elif chain in values:
            last = values[chain]
        else:
            return
        if self.overwritten is None:
            self.overwritten = []
        if last not in self.overwritten:
            self.overwritten.append(last)

    def written_beside(self, chain: bytes) -> bool:
        """Whether a branch that is concurrent with `chain` has written."""
        values = self.values
        if values is None:
            return self.written and self.chain is not None and concurrent(chain, self.chain)
        return any(concurrent(chain, writer) for writer in values)

    def writers(self) -> Iterable[bytes]:
        """The chains that have written."""
        values = self.values
        if values is not None:
            return values
        return (self.chain,) if self.written and self.chain is not None else ()

    def looked_at(self, chain: bytes) -> bytes | None:
        """The latest value visible to `chain`, as `read` gives it, without a note that it has been read."""
        values = self.values
        if values is None:
            if self.written and self.chain is not None and chain.startswith(self.chain):
                return self.value
        else:
            for end in range(len(chain), -1, -PATH_STEP_BYTES):
                if chain[:end] in values:
                    return values[chain[:end]]
        return self.found(self.key)

    def visible(self, chain: bytes) -> bytes | None:
        """The latest of the writes that are visible to `chain`: there is one."""
        values = self.values
        if values is None:
            return self.value
        return values[max([writer for writer in values if chain.startswith(writer)], key=len)]


@native
@plain_stores
class StartingCell(msgspec.Struct, Cell, eq=False, gc=False):
    """One entity as a read-only transaction sees it: the state at the epoch's beginning, whatever others do in the
    epoch. No slot keeps it, so validation never meets it.
    """

    key: Any
    found: Reader

    def read(self, chain: bytes) -> bytes | None:
        """The state at the epoch's beginning."""
        return self.found(self.key)

    def write(self, chain: bytes, value: bytes | None) -> None:
        raise AssertionError("a read-only transaction writes")

    def access(self, access: Access) -> Any:
        raise AssertionError("a read-only transaction writes")

    def sibling(self, environment: Environment, table: str, key: Any) -> Cell:
        """As `Cell.sibling`."""
        assert isinstance(environment, Footprint), "a read-only function runs in a transaction"
        slot = environment.here
        assert slot is not None, "a transaction without a slot has no state"
        return StartingCell(key, slot.found.get(table) or slot.find(table))

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        """As `Cell.scan`."""
        assert isinstance(environment, Footprint), "a read-only function runs in a transaction"
        slot = environment.here
        assert slot is not None, "a transaction without a slot has no state"
        return rows_of(read_range(slot, wanted, environment.n_slots, ()))

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        """As `Cell.count`."""
        assert isinstance(environment, Footprint), "a read-only function runs in a transaction"
        slot = environment.here
        assert slot is not None, "a transaction without a slot has no state"
        return count_range(slot, wanted, environment.n_slots, ())


@native
@plain_stores
class Footprint(msgspec.Struct, Environment, eq=False):
    """One transaction on one slot; also the `Environment` of its contexts there.

    `invocations` is the cached call graph of this slot. `dead`: the transaction has left the epoch, and further
    messages to it are void. `sent` counts the calls made on this slot and, with `Limits.call_bytes`, the large results
    of calls that ran on it. `read_only`: the root is a read-only function, so all functions of the transaction are, and
    it has no cells. `pending_external` is the external call that the transaction has to wait for. `accesses`
    are the accesses to many entities at once, which have no cells. `here` is the slot itself, None if no function runs,
    and `local` its entities in phase 3. `rows` are the rows and ranges of the transaction here, None if there are none.
    `together` are the paths of the partition functions here that run at once with others. `again`: it runs in the lock
    phase.
    Four fields belong to the last run: `raised` is its first exception in serial order, `lines` are the lines that its
    functions logged, `siblings` are the entries that a re-run touched although no invocation is on them, and `beside`
    what an unchanged one wrote to them.
    """

    app: App
    limits: TransactionLimits
    n_slots: int
    tid: int
    timestamp_us: int
    slot: int
    root_slot: int
    sequential: bool
    read_only: bool
    externals: dict[bytes, bytes] | None
    invocations: list[Invocation] = []
    accesses: list[Access] | None = None
    collided: bool = False
    sent: int = 0
    dead: bool = False
    pending_external: ExternalCall | None = None
    raised: Raised | None = None
    lines: Lines | None = None
    here: Slot | None = None
    local: LocalCells | None = None
    siblings: list[tuple[str, Any]] | None = None
    beside: Writes | None = None
    rows: TransactionRows | None = None
    together: set[bytes] | None = None
    again: bool = False
    time: datetime | None = None

    def place(self) -> tuple[int, int]:
        """As `Environment.place`."""
        if self.local is not None:
            return self.local.epoch, LOCAL_PART
        assert self.here is not None, "a transaction without a slot has no place"
        return self.here.epoch, LOCK_PHASE if self.again else FIRST_RUN

    def now(self) -> datetime:
        """As `Environment.now`, made once for all functions of the transaction here."""
        time = self.time
        if time is None:
            time = self.time = Environment.now(self)
        return time

    def add_line(self, line: Line) -> None:
        """As `Environment.add_line`."""
        if self.lines is None:
            self.lines = Lines()
            self.app.logs = True
        self.lines.add(line)

    def run_again(self) -> None:
        """Drops what is left of the run before: from now on it is in the lock phase."""
        self.again = True
        self.raised = None
        self.lines = None
        self.siblings = None
        self.beside = None
        if self.rows is not None:
            self.rows.run_again()

    def rows_here(self) -> TransactionRows:
        """The record of rows and ranges, made when the first one is due."""
        rows = self.rows
        if rows is None:
            rows = self.rows = TransactionRows(self.n_slots)
        return rows

    def has_read(self, chain: bytes, wanted: IndexRange) -> None:
        """Notes a range that a query has read in the execution step."""
        rows, slot = self.rows_here(), self.here
        assert slot is not None, "a transaction without a slot has no state"
        if not rows.ranges:
            slot.querying.append(self)
        if rows.read(chain, wanted):
            self.collided = True

    def touches(self, table: str, key: Any) -> None:
        """Notes an entry that a re-run touches although no invocation is on it."""
        if self.siblings is None:
            self.siblings = []
        self.siblings.append((table, key))

    @property
    def spread(self) -> bool:
        """Whether the transaction takes part on another slot as well, so that several slots decide its end."""
        here = self.slot
        if self.root_slot != here:
            return True
        for invocation in self.invocations:
            calls = invocation._calls
            if calls is not None:
                for call in calls:
                    if call.slot != here:
                        return True
        return False

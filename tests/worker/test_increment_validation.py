"""Validation and commit of increments, against the obvious model: transactions one after the other."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from styx.model.limits import Limits
from styx.native.compiled import transaction_limits
from styx.relational.increment import Increment
from styx.relational.index_range import HIGHEST, LOWEST, Group, IndexRange, Position, RowKey, TableIndex
from styx.relational.row_type import RowType
from styx.state.slot_state import SlotState
from styx.state.table import NEWEST, Table
from styx.worker.footprint import EntityCell, Footprint
from styx.worker.slot import Slot
from styx.worker.validation import commit, conflicts
from tests.protocol.scripted_app import app

ROWS = "cart/items"


class Row(msgspec.Struct):
    n: int = 0
    x: float = 0.0


TYPE = RowType(ROWS, Row)
ZERO = TYPE.encode(Row())


class ByKey(TableIndex):
    """The primary key."""

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        return key[:1], (key[1],)


BY_KEY = ByKey(ROWS, 0, "primary key")


class Epoch:
    """Transactions on one slot with these rows of the entity `ada`."""

    def __init__(self, rows: dict[int, Row]) -> None:
        stored = {("ada", n): TYPE.encode(row) for n, row in rows.items()}
        self.slot = Slot(0, SlotState({ROWS: Table(stored, -1)}), -1)
        self.slot.epoch = 0

    def transaction(self, tid: int) -> Footprint:
        if tid not in self.slot.footprints:
            made = Footprint(app, transaction_limits(Limits()), 4, tid, 0, 0, 0, False, False, None)
            made.here = self.slot
            self.slot.footprints[tid] = made
        return self.slot.footprints[tid]

    def cell(self, tid: int, row: int = 1) -> EntityCell:
        return self.slot.cell(self.transaction(tid), ROWS, ("ada", row))

    def read(self, tid: int, row: int = 1) -> Row | None:
        data = self.cell(tid, row).read(b"")
        return None if data is None else TYPE.decode(data)

    def put(self, tid: int, n: int, row: int = 1) -> None:
        self.cell(tid, row).write(b"", TYPE.encode(Row(n)))

    def delete(self, tid: int, row: int = 1) -> None:
        self.cell(tid, row).write(b"", None)

    def add(self, tid: int, n: int, row: int = 1, x: float = 0.0) -> bool:
        return self.cell(tid, row).add(b"", Increment(TYPE, {"n": n, "x": x}))

    def count_in(self, tid: int, n: int, row: int = 1) -> bool:
        """As a row of a view is kept."""
        return self.cell(tid, row).add(b"", Increment(TYPE, {"n": n}, ZERO, "n"))

    def query(self, tid: int, membership: bool) -> None:
        entity = self.slot.cell(self.transaction(tid), "cart", f"entity of {tid}")
        entity.scan(self.transaction(tid), IndexRange(BY_KEY, ("ada",), LOWEST, HIGHEST, membership), b"")

    def commit(self, *gone: int) -> list[int]:
        """Returns who is in conflict."""
        found = conflicts(self.slot, gone)
        commit(self.slot, {*found, *gone})
        return found

    def rows(self) -> dict[int, int]:
        entries = self.slot.state.table(ROWS).at(NEWEST)
        return {key[1]: TYPE.decode(data).n for key, data in entries.items()}


def test_increments_do_not_conflict_and_are_added_in_tid_order() -> None:
    epoch = Epoch({1: Row()})
    for tid, x in ((3, 1e-16), (1, 1.0), (2, 1e-16)):
        epoch.add(tid, tid, x=x)
    assert epoch.commit() == []
    assert epoch.read(9) == Row(6, 1.0), "behind 1.0 the small ones are nothing"


@pytest.mark.parametrize("other", ["read", "put", "delete", "query"])
def test_who_looks_at_the_row_is_in_conflict_with_lower_increments_alone(other: str) -> None:
    epoch = Epoch({1: Row(10)})
    for tid in (1, 4):
        if other == "read":
            epoch.read(tid)
        elif other == "query":
            epoch.query(tid, membership=False)
        elif other == "put":
            epoch.put(tid, 20)
        else:
            epoch.delete(tid)
    epoch.add(2, 1)
    epoch.add(3, 1)
    assert epoch.commit() == ([2, 3, 4] if other == "delete" else [4])
    assert epoch.rows() == ({} if other == "delete" else {1: 22 if other == "put" else 12})


def test_who_asks_only_which_rows_are_there_is_in_no_conflict_unless_they_can_come_and_go() -> None:
    epoch = Epoch({1: Row(10)})
    epoch.add(1, 1)
    epoch.query(2, membership=True)
    assert epoch.commit() == []
    epoch = Epoch({1: Row(10)})
    epoch.count_in(1, 1)
    epoch.query(2, membership=True)
    assert epoch.commit() == [2]


def test_who_is_gone_adds_nothing_and_is_in_nobodys_way() -> None:
    epoch = Epoch({1: Row(10), 2: Row(10)})
    epoch.add(1, 100)
    epoch.read(2)
    epoch.delete(1, 2)
    epoch.add(2, 1, 2)
    assert epoch.commit(1) == []
    assert epoch.rows() == {1: 10, 2: 11}


def test_who_is_in_conflict_elsewhere_adds_nothing_yet() -> None:
    epoch = Epoch({1: Row(10), 2: Row(10)})
    epoch.put(1, 5, 2)
    epoch.read(2, 2)
    epoch.add(2, 1)
    epoch.add(3, 2)
    assert epoch.commit() == [2]
    assert epoch.rows() == {1: 12, 2: 5}


def test_a_transaction_that_deletes_and_inserts_leaves_a_row_to_add_to() -> None:
    epoch = Epoch({1: Row(10)})
    epoch.delete(1)
    epoch.put(1, 3)
    epoch.add(2, 1)
    assert epoch.commit() == []
    assert epoch.rows() == {1: 4}


def test_a_row_of_a_view_comes_and_goes_with_its_count() -> None:
    epoch = Epoch({1: Row(2)})
    for tid, n, row in ((1, -1, 1), (2, -1, 1), (3, 1, 2), (4, 1, 3), (5, -1, 3)):
        assert epoch.count_in(tid, n, row)
    assert epoch.commit() == []
    assert epoch.rows() == {2: 1}
    changes = epoch.slot.state.table(ROWS).take_changes()
    assert changes == {("ada", 1): None, ("ada", 2): TYPE.encode(Row(1)), ("ada", 3): None}


def test_the_outcome_is_that_of_one_transaction_after_the_other() -> None:
    committed = conflicting = 0
    for seed in range(400):
        random = Random(seed)
        rows = {row: Row(random.randrange(1, 3)) for row in range(3) if random.random() < 0.7}
        counted = random.random() < 0.3
        kinds = ["add", "add", "add", "read", "put", "delete"] if not counted else ["count_in", "count_in", "read"]
        steps = [
            (tid, random.choice(kinds), random.randrange(3), random.choice([-1, 1, 2]))
            for tid in range(1, 7)
            for _ in range(random.randrange(1, 3))
        ]
        epoch = Epoch(rows)
        replies: dict[int, list[object]] = {}
        for step in random.sample(steps, len(steps)) if _one_each(steps) else steps:
            replies.setdefault(step[0], []).append(_do(epoch, *step))
        aborted = {tid for tid, got in replies.items() if False in got}
        found = epoch.commit(*aborted)
        model = Epoch(rows)
        for tid in sorted(replies):
            if tid in aborted or tid in found:
                continue
            one = Epoch(_rows_of(model))
            assert [_do(one, *step) for step in steps if step[0] == tid] == replies[tid], seed
            assert one.commit() == []
            model = one
        assert epoch.rows() == model.rows(), seed
        committed, conflicting = committed + len(replies) - len(found) - len(aborted), conflicting + len(found)
    assert min(committed, conflicting) > 100


def _one_each(steps: list[tuple[int, str, int, int]]) -> bool:
    return len({step[0] for step in steps}) == len(steps)


def _rows_of(epoch: Epoch) -> dict[int, Row]:
    return {key[1]: TYPE.decode(data) for key, data in epoch.slot.state.table(ROWS).at(NEWEST).items()}


def _do(epoch: Epoch, tid: int, kind: str, row: int, n: int) -> object:
    if kind == "read":
        return epoch.read(tid, row)
    if kind == "put":
        epoch.put(tid, n, row)
        return None
    if kind == "delete":
        epoch.delete(tid, row)
        return None
    return epoch.add(tid, n, row) if kind == "add" else epoch.count_in(tid, n, row)

"""Validation of ranges against the obvious model: every query, compared with every row of every lower transaction."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from styx.model.access import Access
from styx.model.limits import Limits
from styx.native.compiled import transaction_limits
from styx.relational.index_range import HIGHEST, LOWEST, Group, IndexRange, Position, RowKey, TableIndex
from styx.state.slot_state import SlotState
from styx.state.table import Table
from styx.worker.footprint import Footprint
from styx.worker.range_counts import RangeCounts
from styx.worker.slot import Slot
from styx.worker.validation import conflicts
from tests.protocol.scripted_app import app

ROWS = "cart/items"


class ByRank(TableIndex):
    """Rows by the first byte of their value, their rank; the second byte is no part of the index."""

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        return key[:1], (data[:1], key[1])


BY_RANK = ByRank(ROWS, 1, "by rank")


class Epoch:
    """Transactions on one slot with these rows of the entity `ada`."""

    def __init__(self, rows: dict[int, bytes]) -> None:
        self.slot = Slot(0, SlotState({ROWS: Table({("ada", n): data for n, data in rows.items()}, -1)}), -1)

    def transaction(self, tid: int) -> Footprint:
        if tid not in self.slot.footprints:
            limits = transaction_limits(Limits())
            made = Footprint(app, limits, 4, tid, 0, 0, 0, False, False, None)
            made.here = self.slot
            self.slot.footprints[tid] = made
        return self.slot.footprints[tid]

    def write(self, tid: int, row: int, data: bytes | None) -> None:
        self.slot.cell(self.transaction(tid), ROWS, ("ada", row)).write(b"", data)

    def scan(self, tid: int, low: Position = LOWEST, high: Position = HIGHEST, **others: Any) -> list[int]:
        entity = self.slot.cell(self.transaction(tid), "cart", f"entity of {tid}")
        wanted = IndexRange(BY_RANK, ("ada",), low, high, **others)
        return [key[1] for key, _ in entity.scan(self.transaction(tid), wanted, b"")]

    def conflicts(self, *gone: int) -> list[int]:
        return conflicts(self.slot, gone)


@pytest.mark.parametrize("written", [b"c", b"k", None])
def test_a_row_that_was_in_the_range_conflicts_wherever_it_goes(written: bytes | None) -> None:
    epoch = Epoch({1: b"b"})
    epoch.write(1, 1, written)
    assert epoch.scan(2, (b"a",), (b"d",)) == [1]
    assert epoch.conflicts() == [2]


def test_a_row_that_comes_into_the_range_conflicts() -> None:
    epoch = Epoch({1: b"x"})
    epoch.write(1, 1, b"b")
    epoch.write(1, 2, b"x")
    epoch.scan(2, (b"a",), (b"d",))
    epoch.scan(3, (b"d",), (b"f",))
    assert epoch.conflicts() == [2]


def test_nobody_conflicts_with_higher_ones_with_itself_or_with_who_is_gone() -> None:
    epoch = Epoch({1: b"b"})
    epoch.scan(1)
    epoch.write(2, 1, b"c")
    epoch.scan(2)
    assert epoch.conflicts() == []
    epoch.scan(3)
    assert epoch.conflicts(2) == []
    assert epoch.conflicts(3) == []
    assert epoch.conflicts() == [3]


def test_rows_and_conflicts_are_counted_by_table() -> None:
    epoch = Epoch({1: b"b", 2: b"c"})
    epoch.write(1, 1, b"c")
    epoch.scan(2, first=1)
    epoch.scan(3)
    epoch.scan(3)
    epoch.scan(4, (b"x",), (b"y",))
    counts = epoch.slot.range_counts
    assert (counts.rows_read, counts.conflicts) == ({ROWS: 1 + 2 + 2}, {})
    assert epoch.conflicts() == [2, 3]
    assert counts.conflicts == {ROWS: 2}, "a transaction counts once"
    total = RangeCounts()
    for _ in range(2):
        total.take(counts)
    assert (total.rows_read, total.conflicts) == ({ROWS: 5}, {ROWS: 2}), "what is taken is counted once"


def test_a_query_of_the_membership_minds_rows_that_move() -> None:
    epoch = Epoch({1: b"b1", 2: b"c"})
    epoch.write(1, 1, b"b2")  # another value at the same place
    epoch.scan(2, membership=True)
    epoch.scan(3)
    assert epoch.conflicts() == [3]
    epoch.write(1, 2, b"b")
    assert epoch.conflicts() == [2, 3]


def test_a_query_of_the_first_rows_ends_at_the_last_one_given() -> None:
    epoch = Epoch({1: b"b", 2: b"c", 3: b"d"})
    epoch.write(1, 3, b"c")
    assert epoch.scan(2, first=2) == [1, 2]
    assert epoch.scan(3, first=3) == [1, 2, 3]
    assert epoch.scan(4, last=1) == [3]
    assert epoch.conflicts() == [3, 4]


def test_rows_that_are_loaded_are_written() -> None:
    class Load(Access):
        def overlaps(self, key: Any) -> bool:
            return key in self.writes

    epoch = Epoch({1: b"b"})
    epoch.transaction(1).accesses = [Load(ROWS, {("ada", 1): b"x"})]
    epoch.scan(2, (b"a",), (b"d",))
    epoch.scan(3, (b"d",), (b"f",))
    assert epoch.conflicts() == [2]
    assert epoch.conflicts(1) == []


def test_conflicts_are_those_of_the_obvious_model() -> None:
    for seed in range(60):
        rng = Random(seed)
        committed = {row: _rank(rng) for row in range(0, 60, 2)}
        epoch, images, ranges = Epoch(committed), list[tuple[int, bytes]](), list[tuple[int, bytes, bytes]]()
        for tid in range(1, 40):
            for _ in range(rng.randrange(3)):
                row, data = rng.randrange(60), rng.choice([_rank(rng), None])
                before = epoch.slot.cell(epoch.transaction(tid), ROWS, ("ada", row))
                epoch.write(tid, row, data)
                assert before is epoch.slot.cell(epoch.transaction(tid), ROWS, ("ada", row))
                images += [(tid, image) for image in (committed.get(row), data) if image is not None]
            if rng.random() < 0.3:
                low, high = sorted([_rank(rng), _rank(rng)])
                epoch.scan(tid, (low,), (high,))
                ranges.append((tid, low, high))
        expected = {tid for tid, low, high in ranges for other, image in images if other < tid and low <= image < high}
        shared = {t for (_, _), others in epoch.slot.shared.items() for t in others}
        assert expected <= set(epoch.conflicts()) <= expected | shared


def _rank(rng: Random) -> bytes:
    return bytes([rng.randrange(97, 107)])

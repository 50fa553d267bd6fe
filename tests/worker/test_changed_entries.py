"""Which changed rows make a part of the lock phase run again."""

from __future__ import annotations

import pytest

from styx.relational.index_range import IndexRange, RowKey
from styx.state.slot_state import SlotState
from styx.state.table import Table
from styx.worker import changed_entries
from styx.worker.changed_entries import ChangedEntries
from styx.worker.footprint import Writes
from styx.worker.slot import Slot
from tests.plain_form import plain_form
from tests.worker.test_row_cell import BY_VALUE, LOW, ROWS

ADA, BOB = (ROWS, ("ada", 1)), (ROWS, ("bob", 1))
MEMBERSHIP = IndexRange(BY_VALUE, ("ada",), (b"a",), (b"c",), membership=True)


def matters(
    changed: ChangedEntries, now: Writes, wanted: IndexRange = LOW, rows: dict[RowKey, bytes] | None = None
) -> bool:
    slot = Slot(0, SlotState({ROWS: Table(rows or {}, -1)}), -1)
    return changed.matter_to([wanted], now, slot, 4)


def run_again(was: Writes, now: Writes) -> ChangedEntries:
    changed = ChangedEntries({})
    changed.compare(was, now)
    return changed


@pytest.mark.parametrize(
    ("was", "now", "rows", "found"),
    [
        ({ADA: b"x"}, {ADA: b"a"}, {}, True),  # comes
        ({ADA: b"a"}, {ADA: b"x"}, {}, True),  # goes
        ({ADA: b"x"}, {ADA: b"y"}, {}, False),
        ({ADA: b"a"}, {}, {}, True),
        ({}, {ADA: b"x"}, {("ada", 1): b"a"}, True),  # what is committed is what it was
        ({ADA: b"x"}, {}, {("ada", 1): b"a"}, True),
        ({ADA: b"x"}, {}, {("ada", 1): b"x"}, False),
        ({BOB: b"x"}, {BOB: b"a"}, {}, False),  # another entity's
        ({ADA: b"a"}, {ADA: b"a"}, {}, False),
    ],
)
def test_a_row_matters_if_it_was_or_is_in_the_range(
    was: Writes, now: Writes, rows: dict[RowKey, bytes], found: bool
) -> None:
    assert matters(run_again(was, now), now, rows=rows) is found


def test_a_row_that_stays_where_it_was_does_not_matter_to_a_query_for_the_membership() -> None:
    class Held(type(BY_VALUE)):  # type: ignore[misc]  # rows by the first byte of their value
        def entry(self, key: RowKey, data: bytes, n_slots: int) -> object:
            return (key[0],), (data[:1], key[1])

    index = Held(ROWS, 2, "held")
    now: Writes = {ADA: b"a2"}
    for membership, found in ((True, False), (False, True)):
        wanted = IndexRange(index, ("ada",), (b"a",), (b"c",), membership)
        assert matters(run_again({ADA: b"a1"}, now), now, wanted) is found
    assert matters(run_again({ADA: b"b"}, {ADA: b"a"}), {ADA: b"a"}, MEMBERSHIP)


def test_what_a_higher_part_writes_again_hides_what_changed_below_it() -> None:
    changed = run_again({ADA: b"a"}, {ADA: b"x"})
    changed.same({ADA: b"y"})
    assert not matters(changed, {ADA: b"y"})
    changed.compare({ADA: b"y"}, {ADA: b"z"})
    assert not matters(changed, {ADA: b"z"}), "it was y, not a"
    changed.compare({ADA: b"a"}, {ADA: b"z"})
    assert matters(changed, {ADA: b"z"})


def test_what_a_part_wrote_that_has_left_is_what_the_row_was() -> None:
    changed = ChangedEntries({})
    changed.gone({ADA: b"a"})
    assert matters(changed, {})
    assert not matters(changed, {ADA: b"a"}), "a lower part had written the same"


@plain_form
def test_with_many_changed_rows_the_part_runs_again_without_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_entries, "LOOKS_MAX", 2)
    for count, found in ((2, False), (3, True)):
        now: Writes = {(ROWS, ("ada", number)): b"x" for number in range(count)}
        assert matters(run_again({}, now), now) is found


def test_without_queries_rows_are_not_kept_apart() -> None:
    changed = ChangedEntries()
    changed.compare({ADA: b"a"}, {BOB: b"a"})
    changed.gone({("cart", "cem"): b"1"})
    changed.same({ADA: b"a"})
    assert changed.entries == {ADA, BOB, ("cart", "cem")}
    assert changed.before is None

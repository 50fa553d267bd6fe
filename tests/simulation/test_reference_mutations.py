"""Mutation proof for references to other entities: each rule of theirs, broken on purpose, is caught by the simulator.

Where the engine and the serial reference both have the mutation, the references are held against the rows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest

from styx.model.access import Access
from styx.model.consequence import ImpliedCall
from styx.model.context import Context
from styx.model.reference_entries import ReferenceEntries
from styx.model.row_store import RowStore
from styx.relational.index_range import RowKey
from styx.worker import range_validation, unchanged_rerun, validation
from styx.worker.slot import Slot
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"links": 1.0}


def nobody_looks_for_the_parent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReferenceEntries, "_is_there", lambda self, store, row: True)


def an_entitys_value_is_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RowStore, "read_value", lambda self: b"")


def an_entry_stays_when_its_row_goes(patch: pytest.MonkeyPatch) -> None:
    original = ReferenceEntries.calls

    def calls(self: ReferenceEntries, key: RowKey, old: Any, new: Any) -> Iterable[ImpliedCall]:
        return original(self, key, None if new is None else old, new) if new is not None else ()

    patch.setattr(ReferenceEntries, "calls", calls)


def an_entry_stays_when_its_row_refers_to_another(patch: pytest.MonkeyPatch) -> None:
    original = ReferenceEntries.calls

    def calls(self: ReferenceEntries, key: RowKey, old: Any, new: Any) -> Iterable[ImpliedCall]:
        return [call for call in original(self, key, old, new) if new is None or call.function != "take"]

    patch.setattr(ReferenceEntries, "calls", calls)


def entries_are_set_and_do_not_count(patch: pytest.MonkeyPatch) -> None:
    async def count(self: ReferenceEntries, ctx: Any, row: list[Any], child: list[Any], more: int) -> None:
        place = (*row, *child)
        if more > 0:
            await ctx.rows(self.table).put(self._entry(*place, 1))
        else:
            await ctx.rows(self.table).delete(place)

    patch.setattr(ReferenceEntries, "_count", count)


def a_deletion_reads_no_entries(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReferenceEntries, "parent_deleted", lambda self, context, parent: None)


def a_cascade_misses_the_last_row(patch: pytest.MonkeyPatch) -> None:
    original = ReferenceEntries._referring

    def referring(self: ReferenceEntries, context: Context, parent: RowKey, first: int) -> list[RowKey]:
        found = original(self, context, parent, first)
        return found if self.reference.on_delete == "restrict" else found[:-1]

    patch.setattr(ReferenceEntries, "_referring", referring)


def nothing_is_restricted(patch: pytest.MonkeyPatch) -> None:
    original = ReferenceEntries._referring

    def referring(self: ReferenceEntries, context: Context, parent: RowKey, first: int) -> list[RowKey]:
        return [] if self.reference.on_delete == "restrict" else original(self, context, parent, first)

    patch.setattr(ReferenceEntries, "_referring", referring)


def ranges_of_entries_are_not_validated(patch: pytest.MonkeyPatch) -> None:
    """A parent that is deleted in the epoch in which a row refers to it first keeps the row."""
    original = range_validation.conflicts_of_ranges

    def conflicts_of_ranges(slot: Slot, accesses: Iterable[tuple[int, Access]], gone: Container[int]) -> set[int]:
        for footprint in slot.querying:
            assert footprint.rows is not None
            footprint.rows.ranges = [each for each in footprint.rows.ranges if "*" not in each[1].index.table]
        return original(slot, accesses, gone)

    patch.setattr(validation, "conflicts_of_ranges", conflicts_of_ranges)


def a_default_is_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReferenceEntries, "_require_again", lambda self, context, parent, child: None)


def a_rerun_reads_an_entitys_value_beside_a_function_on_it(patch: pytest.MonkeyPatch) -> None:
    """What the same transaction has put there, or deleted, is not seen in the lock phase."""
    patch.setattr(unchanged_rerun, "_runs_on", lambda footprint, operator, key: False)


MUTATIONS: list[Mutation] = [
    nobody_looks_for_the_parent,
    an_entitys_value_is_not_looked_for,
    an_entry_stays_when_its_row_goes,
    an_entry_stays_when_its_row_refers_to_another,
    entries_are_set_and_do_not_count,
    a_deletion_reads_no_entries,
    a_cascade_misses_the_last_row,
    nothing_is_restricted,
    ranges_of_entries_are_not_validated,
    a_default_is_not_looked_for,
    a_rerun_reads_an_entitys_value_beside_a_function_on_it,
]


FIRST: dict[Mutation, int] = {
    entries_are_set_and_do_not_count: 7,
    a_default_is_not_looked_for: 12,
    a_rerun_reads_an_entitys_value_beside_a_function_on_it: 139,
}
"""Seeds that notice these, which few do."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False, first=FIRST.get(mutation, 0))

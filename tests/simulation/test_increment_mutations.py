"""Mutation proof for increments: each of their rules, broken on purpose, is caught by the simulator.

One rule cannot be told apart by what transactions give: increments that conflict or collide among themselves only send
transactions to the lock phase or to sequential mode. `tests/worker/test_increment_validation.py` has that, and
`test_incremented_row.py` the order of the branches of one transaction, which hardly ever shows in a sum.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import pytest

from styx.relational.increment import Increment, incremented
from styx.worker import increment_validation, range_validation, validation
from styx.worker.current_cell import CurrentRow
from styx.worker.footprint import Footprint, RowCell
from styx.worker.incremented_row import AnyRow, IncrementedRow
from styx.worker.local_cells import LocalRow
from styx.worker.lock_phase import SlotLockPhase
from styx.worker.slot import Slot
from styx.worker.transaction_rows import TransactionRows
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"rows": 1.0}


# Commit ---------------------------------------------------------------------------------------------------


def increments_are_added_in_the_order_of_arrival(patch: pytest.MonkeyPatch) -> None:
    original = increment_validation.commit_increments

    def commit(slot: Slot, left: Any) -> None:
        with patch.context() as within:
            within.setattr(increment_validation, "_tid", lambda row: 0)
            original(slot, left)

    patch.setattr(validation, "commit_increments", commit)


def increments_are_lost_beside_a_put(patch: pytest.MonkeyPatch) -> None:
    original = increment_validation.commit_increments

    def commit(slot: Slot, left: Any) -> None:
        cells = [(table, cell) for table, cells in slot.cells_by_operator() for cell in cells]
        put = {(table, cell.key) for table, cell in cells if cell.written and cell.footprint.tid not in left}
        slot.incremented = [row for row in slot.incremented if (row.table, row.key) not in put]
        original(slot, left)

    patch.setattr(validation, "commit_increments", commit)


def increments_count_again_in_the_lock_phase(patch: pytest.MonkeyPatch) -> None:
    original = increment_validation.commit_increments
    patch.setattr(validation, "commit_increments", lambda slot, left: original(slot, ()))


def what_a_row_was_given_before_its_put_is_added_to_it(patch: pytest.MonkeyPatch) -> None:
    original = IncrementedRow.write

    def write(self: IncrementedRow, chain: bytes, value: bytes | None) -> None:
        before = list(self._increments().get(chain, ()))
        original(self, chain, None if value is None else incremented(value, before))

    patch.setattr(IncrementedRow, "write", write)


# Validation -----------------------------------------------------------------------------------------------


def readers_do_not_conflict_with_increments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(validation, "conflicts_of_increments", lambda slot, gone: set())


def increments_do_not_conflict_with_deletions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(increment_validation, "deletes", lambda cell: False)


def queries_do_not_conflict_with_increments(patch: pytest.MonkeyPatch) -> None:
    original = range_validation.conflicts_of_ranges

    def conflicts(slot: Slot, accesses: Any, gone: Container[int]) -> set[int]:
        rows, slot.incremented = slot.incremented, []
        found = original(slot, accesses, gone)
        slot.incremented = rows
        return found

    patch.setattr(validation, "conflicts_of_ranges", conflicts)


def rows_of_a_view_do_not_come_and_go(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IncrementedRow, "images", RowCell.images)


# What a transaction sees, and collisions ------------------------------------------------------------------


def own_increments_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IncrementedRow, "visible", lambda self, chain: self._written_above(chain)[0])


def increments_of_the_chains_above_are_not_seen(patch: pytest.MonkeyPatch) -> None:
    def visible(self: IncrementedRow, chain: bytes) -> bytes | None:
        return incremented(self._written_above(chain)[0], self._increments().get(chain, ()))

    patch.setattr(IncrementedRow, "visible", visible)


def queries_do_not_see_own_increments(patch: pytest.MonkeyPatch) -> None:
    original = TransactionRows.wrote

    def wrote(self: TransactionRows, chain: bytes, cell: AnyRow) -> bool:
        return original(self, chain, cell) if cell.written else False

    patch.setattr(TransactionRows, "wrote", wrote)


def increments_do_not_collide_with_other_branches(patch: pytest.MonkeyPatch) -> None:
    add, touch = IncrementedRow.add, IncrementedRow._touch

    def blind_add(self: IncrementedRow, chain: bytes, increment: Increment) -> bool:
        collided = self.footprint.collided
        added = add(self, chain, increment)
        self.footprint.collided = collided
        return added

    def blind_touch(self: IncrementedRow, chain: bytes) -> None:
        increments, self.increments = self.increments, None
        touch(self, chain)
        self.increments = increments

    patch.setattr(IncrementedRow, "add", blind_add)
    patch.setattr(IncrementedRow, "_touch", blind_touch)


# The lock phase, and phase 3 ------------------------------------------------------------------------------


def the_lock_phase_adds_to_what_was_committed(patch: pytest.MonkeyPatch) -> None:
    def add(self: CurrentRow, chain: bytes, increment: Increment) -> bool:
        before = self._found(self._entity[1])
        if before is None and increment.zero is None:
            return False
        self.write(chain, incremented(before, (increment,)))
        return True

    patch.setattr(CurrentRow, "add", add, raising=False)


def what_rows_were_does_not_matter_to_who_runs_again(patch: pytest.MonkeyPatch) -> None:
    """What it adds to may be another value after a round was rolled back."""
    original = SlotLockPhase._would_read_the_same

    def would_read_the_same(self: SlotLockPhase, footprint: Footprint) -> bool:
        siblings, footprint.siblings = footprint.siblings, None
        same = original(self, footprint)
        footprint.siblings = siblings
        return same

    patch.setattr(SlotLockPhase, "_would_read_the_same", would_read_the_same)


def phase_3_keeps_increments_of_who_has_failed(patch: pytest.MonkeyPatch) -> None:
    def add(self: LocalRow, chain: bytes, increment: Increment) -> bool:
        if self.value is None and increment.zero is None:
            return False
        self.value = incremented(self.value, (increment,))
        self.changed = True
        assert self.rows is not None
        self.rows.write(self.table, self.key, self.value)
        return True

    patch.setattr(LocalRow, "add", add, raising=False)


MUTATIONS: list[Mutation] = [
    increments_are_added_in_the_order_of_arrival,
    increments_are_lost_beside_a_put,
    increments_count_again_in_the_lock_phase,
    what_a_row_was_given_before_its_put_is_added_to_it,
    readers_do_not_conflict_with_increments,
    increments_do_not_conflict_with_deletions,
    queries_do_not_conflict_with_increments,
    rows_of_a_view_do_not_come_and_go,
    own_increments_are_not_seen,
    increments_of_the_chains_above_are_not_seen,
    queries_do_not_see_own_increments,
    increments_do_not_collide_with_other_branches,
    the_lock_phase_adds_to_what_was_committed,
    what_rows_were_does_not_matter_to_who_runs_again,
    phase_3_keeps_increments_of_who_has_failed,
]
NOTICED_BY: dict[Mutation, int] = {queries_do_not_conflict_with_increments: 87}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False, first=NOTICED_BY.get(mutation, 0))

"""Mutation proof for sequences and unique ids: each rule of theirs, broken on purpose, is caught by the simulator."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from itertools import count
from typing import Any

import pytest

from styx.model import context
from styx.model.cell import Cell, Environment
from styx.model.table_names import holds_sequences
from styx.model.unique_id import unique_id
from styx.protocol.frames import Patch
from styx.worker import unchanged_rerun, validation
from styx.worker.current_cell import CurrentCell
from styx.worker.footprint import Footprint
from styx.worker.lock_phase import SlotLockPhase
from styx.worker.slot import Slot
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY = {"sequences": 0.6}


def a_number_in_the_lock_phase_is_taken_from_the_starting_state(patch: pytest.MonkeyPatch) -> None:
    original = unchanged_rerun._Cell.sibling

    def sibling(self: Any, environment: Environment, table: str, key: Any) -> Cell:
        cell = original(self, environment, table, key)
        cell._current = {}  # type: ignore[attr-defined]
        return cell

    patch.setattr(unchanged_rerun._Cell, "sibling", sibling)


def a_number_taken_again_the_general_way_is_taken_from_the_starting_state(patch: pytest.MonkeyPatch) -> None:
    def sibling(self: CurrentCell, environment: Environment, table: str, key: Any) -> Cell:
        return CurrentCell(self._writes, {}, self._slot, table, key)

    patch.setattr(CurrentCell, "sibling", sibling)


def numbers_of_an_aborted_transaction_stay(patch: pytest.MonkeyPatch) -> None:
    original = validation.commit

    def commit(slot: Slot, left: Collection[int]) -> None:
        original(slot, left)
        for table, cells in slot.cells_by_operator():
            if holds_sequences(table):
                for cell in cells:
                    if cell.written and cell.footprint.tid in left:
                        slot.table(table).write(slot.epoch, cell.key, cell.final_value())

    patch.setattr(validation, "commit", commit)


def numbers_are_not_rolled_back(patch: pytest.MonkeyPatch) -> None:
    original = SlotLockPhase.next_round

    def next_round(self: SlotLockPhase, number: int, excluded: Container[int], patches: Iterable[Patch]) -> None:
        numbers = {entry: value for entry, value in self._current.items() if holds_sequences(entry[0])}
        original(self, number, excluded, patches)
        self._current.update(numbers)

    patch.setattr(SlotLockPhase, "next_round", next_round)


def what_reads_a_sequence_alone_does_not_run_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Footprint, "touches", lambda self, table, key: None)


def a_number_that_was_not_used_counts(patch: pytest.MonkeyPatch) -> None:
    """An unchanged re-run that is given up leaves its numbers to the general one."""

    def run_again(self: Footprint) -> None:
        self.raised = None
        self.lines = None

    patch.setattr(Footprint, "run_again", run_again)


def numbers_are_not_validated(patch: pytest.MonkeyPatch) -> None:
    original = validation.conflicts

    def conflicts(slot: Slot, gone: Container[int]) -> list[int]:
        shared = slot.shared
        slot.shared = {entry: cells for entry, cells in shared.items() if not holds_sequences(entry[0])}
        found = original(slot, gone)
        slot.shared = shared
        return found

    patch.setattr(validation, "conflicts", conflicts)


def ids_count_runs(patch: pytest.MonkeyPatch) -> None:
    runs = count()
    patch.setattr(context, "unique_id", lambda tid, path, number: unique_id(tid, path, next(runs)))


MUTATIONS: list[Mutation] = [
    a_number_in_the_lock_phase_is_taken_from_the_starting_state,
    a_number_taken_again_the_general_way_is_taken_from_the_starting_state,
    numbers_of_an_aborted_transaction_stay,
    numbers_are_not_rolled_back,
    what_reads_a_sequence_alone_does_not_run_again,
    a_number_that_was_not_used_counts,
    numbers_are_not_validated,
    ids_count_runs,
]


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, BUSY, cluster=False)

"""Mutation proof of the rules of the change feed: each one, broken on purpose, is caught by the simulator, which holds
what followers of all workers and generations are given against each other, and against the state at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from styx.model.changes import EpochChanges
from styx.worker.change_log import ChangeLog, changes_of
from styx.worker.epoch import Epoch
from styx.worker.generation import Generation
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

PACE = {"outside": 0.02}
MADE = "styx.worker.generation.changes_of"
Made = Callable[[EpochChanges], EpochChanges]


def _made(patch: pytest.MonkeyPatch, change: Made) -> None:
    patch.setattr(MADE, lambda slots, versions, epoch: change(changes_of(slots, versions, epoch)))


def an_epoch_is_lost(patch: pytest.MonkeyPatch) -> None:
    _made(patch, lambda found: found if found.epoch % 7 else EpochChanges(found.epoch, 0, []))


def an_epoch_comes_twice(patch: pytest.MonkeyPatch) -> None:
    add = ChangeLog.add

    def added(self: ChangeLog, changes: EpochChanges) -> None:
        add(self, changes)
        add(self, EpochChanges(changes.epoch + 1, changes.n_bytes, changes.tables))

    patch.setattr(ChangeLog, "add", added)


def a_slot_is_missing(patch: pytest.MonkeyPatch) -> None:
    _made(patch, lambda found: EpochChanges(found.epoch, 0, [each for each in found.tables if each.slot]))


def values_are_those_before_the_epoch(patch: pytest.MonkeyPatch) -> None:
    def made(slots: Any, versions: Any, epoch: int) -> EpochChanges:
        found, written = changes_of(slots, versions, epoch), versions.written(epoch)
        images = {(kept.slot, kept.name): kept.images(epoch) for kept in written.tables} if written else {}
        for table in found.tables:
            table.values[:] = [images[table.slot, table.name][key] for key in table.keys]
        return found

    patch.setattr(MADE, made)


def changes_are_made_before_phase_3(patch: pytest.MonkeyPatch) -> None:
    end = Epoch._end_local
    early: dict[tuple[int, int], EpochChanges] = {}

    def end_local(self: Epoch) -> None:
        generation = self._generation
        if generation.versions.oldest is not None:
            found = changes_of(generation.slots, generation.versions, self.number)
            early[id(generation.slots), self.number] = found
        end(self)

    def made(slots: Any, versions: Any, epoch: int) -> EpochChanges:
        return early.pop((id(slots), epoch), None) or changes_of(slots, versions, epoch)

    patch.setattr(Epoch, "_end_local", end_local)
    patch.setattr(MADE, made)


def deleted_rows_are_left_out(patch: pytest.MonkeyPatch) -> None:
    def without(found: EpochChanges) -> EpochChanges:
        for table in found.tables:
            left = [(key, value) for key, value in zip(table.keys, table.values, strict=True) if value is not None]
            table.keys[:] = [key for key, _ in left]
            table.values[:] = [value for _, value in left]
        return found

    _made(patch, without)


def a_generation_begins_to_keep_behind_the_epochs_that_it_runs_again(patch: pytest.MonkeyPatch) -> None:
    """And says that it has them."""
    closed = Generation.closed

    def kept(self: Generation) -> Any:
        log, again = self.changes, self.epoch <= self.recorded_until
        if again:
            self.changes = None
        effects = closed(self)
        self.changes = log
        if again and log is not None:
            log.closes(self.epoch)
        return effects

    patch.setattr(Generation, "closed", kept)


MUTATIONS: dict[Mutation, bool] = {
    an_epoch_is_lost: False,
    an_epoch_comes_twice: False,
    a_slot_is_missing: False,
    values_are_those_before_the_epoch: False,
    changes_are_made_before_phase_3: False,
    deleted_rows_are_left_out: False,
    a_generation_begins_to_keep_behind_the_epochs_that_it_runs_again: True,
}
"""Each with whether it is tried on a cluster."""


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, PACE, cluster=MUTATIONS[mutation], first=0)

"""Engines in which one kind of transaction is broken: the judge must see each of them in a mixed history."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from proof.judge import adya
from proof.judge.__main__ import judge
from proof.judge.app import app
from proof.judge.claimed_order import problems
from proof.judge.record import record
from proof.judge.recorded import Recorded
from proof.judge.workload import Model, Workload
from styx.client.embedded import embedded
from styx.model import context
from styx.model.unique_id import unique_id
from styx.protocol.frames import Patch
from styx.worker.call_graph import CallGraph
from styx.worker.local_cells import LocalCells
from styx.worker.outbox import made_call
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation
from tests.simulation.test_local_mutations import (
    phase_3_comes_before_the_lock_phase,
    phase_3_is_not_in_tid_order,
    what_left_its_slot_keeps_its_writes,
)
from tests.simulation.test_read_only_mutations import (
    a_read_sees_what_its_own_epoch_writes,
    reads_are_validated_like_any_other,
    reads_see_the_epoch_before_and_say_so,
)
from tests.simulation.test_sequence_mutations import (
    a_number_in_the_lock_phase_is_taken_from_the_starting_state,
    numbers_of_an_aborted_transaction_stay,
)

pytestmark = [plain_form, pytest.mark.slow, pytest.mark.usefixtures("judge")]


def a_local_write_is_lost(patch: pytest.MonkeyPatch) -> None:
    """Where a local transaction writes several entities, one of them now and then."""
    original = LocalCells.keep

    def keep(self: Any) -> None:
        lost = [(cell, cell.before) for cell in self._wrote[1:2]]
        original(self)
        for cell, before in lost:
            cell.value, cell.changed = before, False

    patch.setattr(LocalCells, "keep", keep)


def a_result_that_changed_is_not_taken(patch: pytest.MonkeyPatch) -> None:
    """A number that was read on another slot stays what it was before the lock phase."""
    original = CallGraph.apply

    def apply(self: CallGraph, message: Patch) -> None:
        if message.result is None or message.path not in self.results or message.path in self._guessed:
            original(self, message)

    patch.setattr(CallGraph, "apply", apply)


def an_argument_that_changed_is_not_taken(patch: pytest.MonkeyPatch) -> None:
    """An asynchronous call of another slot runs with the arguments that it had before the lock phase."""
    original = CallGraph.apply

    def apply(self: CallGraph, message: Patch) -> None:
        claims = list(self._entries.get(message.path, {}).values())
        called = message.call
        if called is None or called.synchronous or not claims or claims[0].key != made_call(app, called).key:
            original(self, message)

    patch.setattr(CallGraph, "apply", apply)


def ids_lack_the_transaction(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(context, "unique_id", lambda tid, path, number: unique_id(1, path, number))


BROKEN: Final[dict[Mutation, bool]] = {
    reads_see_the_epoch_before_and_say_so: True,
    a_read_sees_what_its_own_epoch_writes: True,
    reads_are_validated_like_any_other: False,
    a_local_write_is_lost: True,
    phase_3_comes_before_the_lock_phase: False,
    phase_3_is_not_in_tid_order: False,
    what_left_its_slot_keeps_its_writes: True,
    a_result_that_changed_is_not_taken: True,
    an_argument_that_changed_is_not_taken: True,
    a_number_in_the_lock_phase_is_taken_from_the_starting_state: True,
    numbers_of_an_aborted_transaction_stay: False,
    ids_lack_the_transaction: True,
}
"""Whether adya sees it. Our own check sees all: it knows the claimed order, the phases, and that numbers have no gaps.
"""


def recorded_from_an_engine(model: Model, folder: Path) -> Recorded:
    async def run() -> Recorded:
        async with embedded(app) as client:
            return await record([client], Workload(model, 6, seed=1), processes=20, transactions=1_000)

    recorded = asyncio.run(run())
    recorded.save(folder)
    return recorded


@pytest.mark.parametrize("mutation", BROKEN, ids=lambda mutation: mutation.__name__)
def test_the_judge_sees(mutation: Mutation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    recorded = recorded_from_an_engine("list-append", tmp_path)
    assert adya.check(recorded, tmp_path).valid is not BROKEN[mutation]
    assert problems(recorded)
    assert judge(recorded, tmp_path) == 1

"""Mutation proof for contended functions: each rule of what is left to the lock phase, broken on purpose.

What goes on in the lock phase itself is broken in the mutations of its rounds, and here only where a first run that
happens there is needed to notice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from proof.random_requests import CONTENDED
from proof.simulation.plan import Fault
from styx.worker import call_graph, epoch, lock_phase, lock_rounds
from styx.worker.executor import Executor
from styx.worker.intake import Intake
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

PACE = {"contended": 1.0, "requests": 60, "travels": 0.5}
OUTSIDE = {**PACE, "externals": 0.5}
SLOW_EPOCHS = {**OUTSIDE, "requests": 10, "log_delay_s": 0.05}
"""What goes round in circles makes few rounds until nobody waits for it any longer."""
LIMITED = {**PACE, "invocations_max": 10, "profile": CONTENDED}
CRASHES = {
    **OUTSIDE,
    "duration_s": 1.0,
    "bursts": 50,
    "snapshot_interval_s": 0.05,
    "faults": tuple(Fault("worker crash", 0.06 * i, 0.02) for i in range(1, 20)),
}
"""Workers crash while requests that were carried wait for their second epoch."""


def _unrun(roots: Iterable[Any]) -> list[Any]:
    """Those that are left to the lock phase."""
    return [
        root
        for root in roots
        if not root.done and root.function is not None and root.function.contended and not root.sequential
    ]


def it_counts_as_committed(patch: pytest.MonkeyPatch) -> None:
    original = Executor.begin

    def begin(self: Executor, number: int, roots: list[Any]) -> None:
        left = _unrun(roots)
        original(self, number, roots)
        for root in left:
            root.collided = False

    patch.setattr(Executor, "begin", begin)


def it_runs_in_the_execution_step_too(patch: pytest.MonkeyPatch) -> None:
    original = Executor.begin

    def begin(self: Executor, number: int, roots: list[Any]) -> None:
        left = _unrun(roots)
        original(self, number, roots)
        for root in left:
            self._ready.append(self.slots[root.slot].footprints[root.tid].invocations[0])

    patch.setattr(Executor, "begin", begin)


def a_replay_runs_it_in_the_execution_step(patch: pytest.MonkeyPatch) -> None:
    original = epoch.Epoch.begin

    def begin(self: epoch.Epoch) -> None:
        if self.plan is None:
            original(self)
            return
        with pytest.MonkeyPatch.context() as within:
            within.setattr(Executor, "begin", _tries(Executor.begin))
            original(self)

    patch.setattr(epoch.Epoch, "begin", begin)


def _tries(original: Any) -> Any:
    def begin(self: Executor, number: int, roots: list[Any]) -> None:
        functions = {id(root.function): root.function for root in _unrun(roots)}
        for function in functions.values():
            function.contended = False
        try:
            original(self, number, roots)
        finally:
            for function in functions.values():
                function.contended = True

    return begin


def what_was_carried_is_left_to_the_lock_phase_again(patch: pytest.MonkeyPatch) -> None:
    original = lock_rounds.LockRounds.end

    def end(self: Any, root: Any) -> bool:
        before = root.sequential
        ended = original(self, root)
        if root.function.contended:
            root.sequential = before
        return ended

    patch.setattr(lock_rounds.LockRounds, "end", end)


def what_was_carried_is_left_to_the_lock_phase_again_behind_a_snapshot(patch: pytest.MonkeyPatch) -> None:
    original = Intake._readmit

    def readmit(self: Intake, slot: int, pending: Any) -> None:
        before = len(self.carried)
        original(self, slot, pending)
        for root in self.carried[before:]:
            if root.function is not None and root.function.contended:
                root.sequential = False

    patch.setattr(Intake, "_readmit", readmit)


def its_calls_are_counted_from_where_nothing_is_left(patch: pytest.MonkeyPatch) -> None:
    """Each slot may make as many calls as all of them together."""
    original = call_graph.CallGraph.__init__

    def init(self: Any, footprint: Any, growth: int) -> None:
        original(self, footprint, footprint.limits.invocations_max)

    patch.setattr(call_graph.CallGraph, "__init__", init)


def its_first_call_tells_nobody_that_other_slots_take_part(patch: pytest.MonkeyPatch) -> None:
    original = lock_phase.SlotLockPhase._send

    def send(self: Any, *arguments: Any) -> None:
        before = set(self._spread)
        original(self, *arguments)
        self._spread = before

    patch.setattr(lock_phase.SlotLockPhase, "_send", send)


MUTATIONS: list[tuple[Mutation, dict[str, Any]]] = [
    (it_counts_as_committed, PACE),
    (it_runs_in_the_execution_step_too, PACE),
    (a_replay_runs_it_in_the_execution_step, CRASHES),
    (what_was_carried_is_left_to_the_lock_phase_again, SLOW_EPOCHS),
    (what_was_carried_is_left_to_the_lock_phase_again_behind_a_snapshot, CRASHES),
    (its_calls_are_counted_from_where_nothing_is_left, LIMITED),
    (its_first_call_tells_nobody_that_other_slots_take_part, PACE),
]

NOTICED_BY: dict[Mutation, int] = {
    what_was_carried_is_left_to_the_lock_phase_again_behind_a_snapshot: 19,
    it_runs_in_the_execution_step_too: 3,
    its_calls_are_counted_from_where_nothing_is_left: 1,
    its_first_call_tells_nobody_that_other_slots_take_part: 18,
}
"""Seeds that are tried first."""


@pytest.mark.slow
@pytest.mark.parametrize(("mutation", "pace"), MUTATIONS, ids=[mutation.__name__ for mutation, _ in MUTATIONS])
def test_the_simulator_catches(mutation: Mutation, pace: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    assert_caught(mutation, pace, cluster=False, first=NOTICED_BY.get(mutation, 0))

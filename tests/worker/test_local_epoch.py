"""Phase 3 as a step of an epoch: its slices, what leaves with the replies, and what comes meanwhile."""

from __future__ import annotations

import pytest

from styx.log.base import Record
from styx.messages import encode_request
from styx.model.limits import Limits
from styx.protocol.messages import Commit, Conflicts, Resume, SnapshotEnded
from styx.worker.events import (
    Effect,
    EmitReplies,
    Proceed,
    RecordDurable,
    ReportLeft,
    RequestsArrived,
    Step,
    StoreSlots,
)
from tests.protocol.cluster import script_request
from tests.worker.test_worker import Alone

MANY = 24
"""In a first epoch, which has few transactions."""


def at_barrier_2(*scripts: str, n_slots: int = 1, snapshot: bool = False, hold: bool = False) -> tuple[Alone, Commit]:
    """A worker whose epoch of an ordinary request and these local ones is to be committed."""
    alone = Alone(n_slots, Limits(slice_invocations=8))
    alone.worker._generation.alone = True
    requests = [script_request("ordinary", "a0", "put 1", "")]
    requests += [script_request(f"r{n}", "a0", script, "", "near") for n, script in enumerate(scripts)]
    arrivals = [Record(n, 0, encode_request(request)) for n, request in enumerate(requests)]
    alone.say(Resume(1))
    alone.step(RequestsArrived(1, 0, arrivals))
    while alone.worker.runnable:
        alone.step(Proceed())
    alone.step(RecordDurable(1, 0))
    assert alone.told[-1] == Conflicts(1, 0, [])
    return alone, Commit(1, 0, [], snapshot, hold)


def phases(effects: list[Effect]) -> list[int]:
    return [reply.phase for effect in effects if isinstance(effect, EmitReplies) for reply in effect.replies]


def to_the_end(alone: Alone) -> list[Effect]:
    effects: list[Effect] = []
    while alone.worker.runnable:
        effects += alone.step(Proceed())
    return effects


def test_thousands_do_not_hold_the_process_up_and_the_others_replies_do_not_wait() -> None:
    alone, commit = at_barrier_2(*["add 1"] * MANY)
    effects = alone.say(commit)
    assert (alone.worker.reached, phases(effects)) == (Step.LOCAL, [1])
    before = alone.worker.executor.calls
    slices = 0
    while alone.worker.runnable:
        effects = alone.step(Proceed())
        slices += 1
    assert (slices, alone.worker.executor.calls - before) == (MANY / 8, MANY)
    assert (alone.worker.reached, phases(effects)) == (Step.IDLE, [3] * MANY)


def test_a_few_end_in_the_same_step_with_all_replies_at_once() -> None:
    alone, commit = at_barrier_2("add 1")
    assert phases(alone.say(commit)) == [1, 3]
    assert alone.worker.reached is Step.IDLE


def test_what_left_is_in_the_next_epoch_at_once_and_reported() -> None:
    alone, commit = at_barrier_2("send b1 (add 1)", n_slots=2)
    effects = alone.say(commit)
    assert [e.functions for e in effects if isinstance(e, ReportLeft)] == [{("entity", "near"): 1}]
    assert (alone.worker.epoch, alone.worker.reached) == (1, Step.EXECUTING)


def test_what_left_is_in_the_snapshot_of_its_epoch_and_not_local_when_that_is_loaded() -> None:
    alone, commit = at_barrier_2("send b1 (add 1)", "add 1", n_slots=2, snapshot=True, hold=True)
    stored = next(effect for effect in alone.say(commit) if isinstance(effect, StoreSlots))
    pending = stored.slots[0].pending
    assert [len(pending), stored.slots[0].delta] == [1, {"entity": {"a0": b"\x02"}}]
    again = Alone(2, pending=pending)
    again.say(Resume(1))
    root = again.worker.executor.roots[pending[0].tid]
    assert (root.local, root.done) == (False, False)


@pytest.mark.parametrize("hold", [False, True])
def test_a_snapshot_that_failed_elsewhere_meanwhile_is_not_taken(hold: bool) -> None:
    alone, commit = at_barrier_2(*["add 1"] * MANY, snapshot=True, hold=hold)
    alone.say(commit)
    alone.say(SnapshotEnded(1, 0, complete=False))
    effects = to_the_end(alone)
    assert not any(isinstance(effect, StoreSlots) for effect in effects)
    assert alone.worker.reached is Step.IDLE

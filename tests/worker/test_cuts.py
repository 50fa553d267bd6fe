"""What becomes of transactions of which the watchdog has ended a function, and what is recorded of them."""

from __future__ import annotations

import pytest

from styx.errors import EngineFailed
from styx.model.limits import CLOSED_PATIENCE, REPLAY_PATIENCE
from styx.protocol.frames import Failure
from styx.protocol.messages import NOTHING
from styx.sequencer.epoch_record import EpochPlan, SlotBatch
from styx.worker import cuts
from styx.worker.cuts import Stopped
from styx.worker.invocation import CUT_CODE
from styx.worker.root import RootTransaction
from tests.worker.execution import scripted_root

TOO_LONG = Failure(b"", b"\0\1", False, CUT_CODE, "FunctionTooLong", "f ran 10 s")
ABORTED = ("aborted", "FunctionTooLong", "f ran 10 s")


def cut_root(tid: int = 1, failure: Failure | None = TOO_LONG) -> RootTransaction:
    root = scripted_root(tid, "a0", "get")
    root.begin()
    root.cut = root.done = True
    root.failure = failure
    return root


def test_it_ends_the_transaction() -> None:
    root = cut_root()
    cuts.settle([root], 1)
    assert root.failure == TOO_LONG._replace(code="aborted")
    assert cuts.verdicts([root], {1}, []) == [(1, ABORTED)]


def test_an_exception_that_comes_first_ends_it_and_is_recorded_as_well() -> None:
    first = Failure(b"", b"\0\0", False, "aborted", "Short", "no money")
    root = cut_root(failure=first)
    cuts.settle([root], 1)
    assert root.failure == first
    assert cuts.verdicts([root], (), []) == [(1, ("aborted", "Short", "no money"))]


@pytest.mark.parametrize("flag", ["collided", "external"])
def test_what_is_not_known_yet_is_found_out_in_sequential_mode(flag: str) -> None:
    root = cut_root()
    setattr(root, flag, True)
    cuts.settle([root], 1)
    assert root.overflow
    assert cuts.verdicts([root], {1}, [1]) == [(1, None)]


def test_one_that_left_the_epoch_is_recorded_where_its_function_was_ended() -> None:
    assert cuts.verdicts([], {7, 3}, [3, 5, 7]) == [(3, None), (7, None)]
    assert cuts.verdicts([], {7}, []) == [], "its own worker has recorded it"


def test_a_recorded_outcome_is_there_before_anything_runs() -> None:
    ended, left, other = (scripted_root(tid, "a0", "get") for tid in (1, 2, 3))
    cuts.apply({1: ABORTED, 2: None}, [ended, left, other])
    assert ended.done
    assert ended.failure == Failure(b"", b"", False, *ABORTED)
    assert left.done
    assert left.overflow
    assert not other.done


def test_time_decides_nothing_that_is_known_to_have_been_decided() -> None:
    with pytest.raises(EngineFailed, match=r"transaction 1 .*\(f ran 10 s\).*ended when it ran first"):
        cuts.settle([cut_root()], CLOSED_PATIENCE)
    with pytest.raises(EngineFailed, match="transaction 4 does not end"):
        cuts.of_locks([4], CLOSED_PATIENCE)
    left = cut_root()
    left.overflow = True
    cuts.settle([left], CLOSED_PATIENCE)  # whatever this branch did, it was not in the epoch
    cuts.settle([], CLOSED_PATIENCE)
    assert cuts.of_locks([], CLOSED_PATIENCE) == []
    cuts.settle([cut_root()], REPLAY_PATIENCE)
    assert cuts.of_locks([4], REPLAY_PATIENCE) == [4]


def test_a_later_epoch_or_a_reply_of_any_worker_says_what_had_been_decided() -> None:
    last, earlier = EpochPlan(4, 9, {}, last=True), EpochPlan(4, 9, {})

    def decided(plan: EpochPlan, answered: tuple[int, int]) -> tuple[bool, bool]:
        execution, locks = (cuts.patience(plan, answered, locking) for locking in (False, True))
        return execution == CLOSED_PATIENCE, locks == CLOSED_PATIENCE

    assert cuts.patience(None, NOTHING, locking=False) == 1
    assert decided(last, NOTHING) == (False, False)
    assert decided(last, (3, 2)) == (False, False)
    assert decided(last, (4, 0)) == (True, False)
    assert decided(last, (4, 1)) == (True, False)
    assert decided(last, (4, 2)) == (True, True)
    assert decided(last, (5, 0)) == (True, True)
    assert decided(earlier, NOTHING) == (True, True)


def end(chain: bytes) -> Failure:
    return Failure(chain, chain, False, CUT_CODE, "FunctionTooLong", "f ran 10 s")


def test_nothing_is_left_out_before_an_end() -> None:
    stopped = Stopped()
    assert not stopped.any
    assert stopped.first(1) is None
    assert not stopped.given_up(1)


def test_the_first_end_in_serial_order_counts_and_a_second_one_gives_up_what_is_left() -> None:
    stopped = Stopped()
    stopped.ended(1, end(b"\0\2"))
    assert stopped.any
    assert stopped.first(1) == end(b"\0\2")
    assert not stopped.given_up(1)
    stopped.ended(1, end(b"\0\1"))
    assert stopped.first(1) == end(b"\0\1")
    assert stopped.given_up(1)
    assert stopped.first(2) is None


def test_what_is_heard_is_no_second_end() -> None:
    stopped = Stopped()
    stopped.heard(1, end(b"\0\2"))
    assert stopped.first(1) == end(b"\0\2")
    stopped.heard(1, end(b"\0\1"))
    assert stopped.first(1) == end(b"\0\2")
    assert not stopped.given_up(1)


def test_another_epoch_begins_with_nothing() -> None:
    stopped = Stopped()
    for _ in range(2):
        stopped.ended(1, end(b"\0\2"))
    stopped.clear()
    assert not stopped.any
    assert stopped.first(1) is None
    assert not stopped.given_up(1)


# Phase 3 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answered", "given", "open_slots", "slots"),
    [
        (NOTHING, set(), [0, 1], set()),
        ((4, 2), set(), [0, 1], set()),
        ((4, 3), {5}, [0, 1], {1}),  # a reply of slot 1's phase 3 says nothing of slot 0's
        ((4, 1), set(), [0], {1}),  # nor does a later record of its worker
        ((5, 0), set(), [0, 1], {0, 1}),  # a reply of the next epoch has waited for the records of all
    ],
)
def test_whose_phase_3_is_known_to_have_ended(
    answered: tuple[int, int], given: set[int], open_slots: list[int], slots: set[int]
) -> None:
    batches = {slot: SlotBatch(slot, 0, 1, 1) for slot in (0, 1)}
    plan = EpochPlan(4, 0, batches, last=True, open=open_slots)
    local = [scripted_root(4, "a0", "get"), scripted_root(5, "a1", "get")]
    assert cuts.decided_slots(plan, answered, given, local) == slots


def test_patience_in_phase_3() -> None:
    plan = EpochPlan(4, 0, {})
    patience = [cuts.local_patience(None, False), cuts.local_patience(plan, False), cuts.local_patience(plan, True)]
    assert patience == [1, REPLAY_PATIENCE, CLOSED_PATIENCE]

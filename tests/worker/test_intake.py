"""Who takes part in an epoch: how slots share its room, and that a replay forms the same epoch again."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from styx.limits import Limits
from styx.messages import encode_request
from styx.protocol import PendingTransaction
from styx.sequencer.arrival import Arrival
from styx.sequencer.epoch_record import EpochPlan, Resumed, SlotBatch
from styx.worker.events import NotResumed, ReportPoison
from styx.worker.intake import Intake
from styx.worker.messages import ExternalDone
from styx.worker.pressure import REPLY_BYTES
from styx.worker.reply_memory import ReplyMemory
from styx.worker.slot import Slot
from tests.protocol.cluster import script_request
from tests.protocol.scripted_app import app

KEYS = ("a0", "a1", "a2")


def intake(n_slots: int, limits: Limits | None = None, pending: Sequence[PendingTransaction] = ()) -> Intake:
    """All slots of a deployment; `pending` are slot 0's."""
    made = Intake(app, limits or Limits(), n_slots)
    for slot in range(n_slots):
        made.add_slot(slot, 0, list(pending) if slot == 0 else [], ReplyMemory(Slot(slot), 10, 10**9))
    return made


def arrivals(slot: int, count: int, first: int = 0) -> list[Arrival]:
    request = encode_request(script_request("r", KEYS[slot], "get", ""))
    return [Arrival(offset, 0, request) for offset in range(first, first + count)]


def carried(tid: int, parked: bool = False) -> PendingTransaction:
    request = script_request(f"c{tid}", "a0", "outside pay" if parked else "get", "")
    return PendingTransaction(tid, 0, 0, encode_request(request), parked, parked, None, [])


def counts(batches: list[SlotBatch]) -> dict[int, int]:
    return {batch.slot: batch.count for batch in batches}


# Room ----------------------------------------------------------------------------------------------------------


def test_slots_share_an_epochs_room_and_take_turns_at_the_odd_one() -> None:
    three = intake(3, Limits(epoch_transactions_max=4))
    for slot in range(3):
        three.arrive(slot, arrivals(slot, 4))
    taken = [counts(three.form(epoch, 0)[1]) for epoch in range(3)]
    assert taken == [{0: 2, 1: 1, 2: 1}, {1: 2, 2: 1, 0: 1}, {2: 2, 0: 1, 1: 1}]


def test_room_that_one_slot_does_not_use_is_anothers() -> None:
    three = intake(3, Limits(epoch_transactions_max=4))
    three.arrive(2, arrivals(2, 9))
    assert counts(three.form(0, 0)[1]) == {0: 0, 1: 0, 2: 4}
    assert three.backlog == 5


def test_a_log_that_is_behind_takes_no_new_requests() -> None:
    one = intake(1, pending=[carried(1)])
    one.arrive(0, arrivals(0, 5))
    one.pressure.congested = True
    assert one.has_work, "what was carried goes on"
    roots, batches = one.form(0, 0)
    assert ([root.tid for root in roots], counts(batches)) == ([1], {0: 0})
    assert not one.has_work
    one.pressure.congested = False
    assert one.has_work
    assert counts(one.form(1, 0)[1]) == {0: 5}


def test_large_replies_make_the_next_epoch_smaller() -> None:
    one = intake(1)
    one.arrive(0, arrivals(0, 400))
    one.pressure.epoch_ended(250, 250 * 1024 * 1024)
    assert counts(one.form(0, 0)[1]) == {0: 32}


def test_the_bytes_that_wait() -> None:
    one = intake(1)
    sent = arrivals(0, 9)
    size = len(sent[0].payload)
    one.arrive(0, sent)
    one.arrive(0, sent)
    assert one.waiting() == {0: (9, 9 * size)}
    one.pressure.epoch_ended(1, REPLY_BYTES + 1)
    one.form(0, 0)
    assert one.waiting() == {0: (8, 8 * size)}


def test_carried_transactions_take_room() -> None:
    one = intake(1, Limits(epoch_transactions_max=2), [carried(1), carried(2), carried(3)])
    one.arrive(0, arrivals(0, 2))
    roots, batches = one.form(0, 3)
    assert ([root.tid for root in roots], counts(batches)) == ([1, 2, 3], {0: 0})
    roots, batches = one.form(1, 3)
    assert ([root.tid for root in roots], counts(batches)) == ([4, 5], {0: 2})


def test_a_slot_with_too_many_parked_transactions_takes_no_more_and_is_no_reason_for_an_epoch() -> None:
    two = intake(2, Limits(parked_max=1), [carried(1, parked=True)])
    [root], _ = two.form(0, 0)
    two.parked[root.tid] = root  # it has come upon another outside call
    two.arrive(0, arrivals(0, 1))
    assert not two.has_work
    two.arrive(1, arrivals(1, 1))
    assert two.has_work
    assert counts(two.form(1, 0)[1]) == {0: 0, 1: 1}


def test_an_idle_deployment_has_no_work() -> None:
    one = intake(1)
    assert not one.has_work
    one.arrive(0, arrivals(0, 1))
    assert one.has_work
    one.form(0, 0)
    assert not one.has_work


def test_other_workers_slots_are_no_concern() -> None:
    one = intake(1)
    one.arrive(2, arrivals(2, 1))
    assert one.backlog == 0


# Parked transactions -------------------------------------------------------------------------------------------


def test_an_outcome_resumes_its_transaction_once() -> None:
    one = intake(1, pending=[carried(1, parked=True)])
    for _ in range(2):
        one.outcome(ExternalDone(1, 0, b"key", b"outcome"))
    [root], [batch] = one.form(0, 1)
    assert (root.tid, root.externals, batch.resumed) == (1, {b"key": b"outcome"}, [Resumed(1, {b"key": b"outcome"})])
    assert one.parked == {}
    one.parked[1] = root
    one.outcome(ExternalDone(1, 0, b"key", b"outcome"))
    assert not one.has_work, "that outcome is known"
    one.outcome(ExternalDone(9, 0, b"key", b"outcome"))
    assert not one.has_work, "nobody waits for this one"


def test_one_parked_in_a_snapshot_asks_again_by_itself() -> None:
    one = intake(1, pending=[carried(1, parked=True)])
    assert one.has_work
    [root], [batch] = one.form(0, 1)
    assert (root.tid, batch.resumed) == (1, [Resumed(1, {})])


# Replay and snapshots ------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=10), st.integers(1, 5))
def test_a_replay_forms_the_same_epochs_with_the_same_tids(deliveries: list[tuple[int, int]], room: int) -> None:
    live = intake(3, Limits(epoch_transactions_max=room))
    plans, formed, counter, arrived = [], [], 0, [0, 0, 0]
    for epoch, (slot, count) in enumerate(deliveries):
        live.arrive(slot, arrivals(slot, count, arrived[slot]))
        arrived[slot] += count
        roots, batches = live.form(epoch, counter)
        plans.append(EpochPlan(epoch, counter, {batch.slot: batch for batch in batches}))
        formed.append([(root.tid, root.slot, root.offset) for root in roots])
        counter += max(batch.count for batch in batches)
    again = intake(3, Limits(epoch_transactions_max=room))
    for slot in range(3):
        again.arrive(slot, arrivals(slot, arrived[slot]))
    assert all(again.can_replay(plan) for plan in plans)
    replayed = [[(root.tid, root.slot, root.offset) for root in again.replay(plan)[0]] for plan in plans]
    assert [sorted(epoch) for epoch in replayed] == [sorted(epoch) for epoch in formed]
    assert [again.rest(slot) for slot in range(3)] == [live.rest(slot) for slot in range(3)]


def test_tids_rise_from_epoch_to_epoch() -> None:
    three = intake(3)
    last, counter = 0, 0
    for epoch, count in enumerate((3, 1, 4)):
        three.arrive(epoch, arrivals(epoch, count))
        roots, batches = three.form(epoch, counter)
        assert min(root.tid for root in roots) > last
        last = max(root.tid for root in roots)
        counter += max(batch.count for batch in batches)


def test_what_rests_is_what_a_snapshot_must_hold() -> None:
    held = [carried(1), carried(2, parked=True)]
    one = intake(1, pending=held)
    assert one.rest(0) == (0, held)
    one.arrive(0, arrivals(0, 1))
    roots, _ = one.form(0, 1)
    assert one.rest(0) == (1, []), "all are in the epoch"
    one.carried = [root for root in roots if root.tid == 1]
    assert one.rest(0) == (1, [carried(1)])


def test_garbage_costs_its_tid_only() -> None:
    one = intake(1)
    one.arrive(0, [Arrival(0, 0, b"\xc1"), *arrivals(0, 1, first=1)])
    roots, _ = one.form(0, 0)
    assert [(root.tid, root.offset) for root in roots] == [(2, 1)]
    (poison,) = one.take_told()
    assert isinstance(poison, ReportPoison)
    assert (poison.slot, poison.offset) == (0, 0)
    assert one.take_told() == []


def test_a_replay_goes_on_without_what_waits_for_nothing_now() -> None:
    """A function made an outside call when it ran first, and does not now: no recovery must end of it."""
    one = intake(1, pending=[carried(1)])
    batches = {0: SlotBatch(0, 0, 0, 0, [Resumed(1, {b"call": b"\x01"}), Resumed(2, {})])}
    roots, _ = one.replay(EpochPlan(5, 3, batches))
    assert [root.tid for root in roots] == [1]
    assert one.take_told() == [NotResumed(0, 1), NotResumed(0, 2)]

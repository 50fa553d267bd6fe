"""Who takes part in an epoch: how slots share its room, and that a replay forms the same epoch again."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from styx.log.base import Record
from styx.messages import encode_request
from styx.model.agenda import AT_ONCE, AgendaEntry, agenda_of, encode_entry
from styx.model.function_spec import READ_FUNCTION
from styx.model.limits import Limits
from styx.protocol.frames import ExternalDone
from styx.protocol.manifest import PendingTransaction
from styx.sequencer.epoch_record import EpochPlan, Resumed, SlotBatch
from styx.state.slot_state import SlotState
from styx.worker.events import NotResumed, ReportPoison
from styx.worker.intake import Intake
from styx.worker.reply_memory import ReplyMemory
from styx.worker.root import RootTransaction
from tests.protocol.cluster import script_request
from tests.protocol.scripted_app import app

KEYS = ("a0", "a1", "a2")


def intake(n_slots: int, limits: Limits | None = None, pending: Sequence[PendingTransaction] = ()) -> Intake:
    """All slots of a deployment; `pending` are slot 0's."""
    made = Intake(app, limits or Limits(), n_slots)
    for slot in range(n_slots):
        made.add_slot(
            slot, 0, list(pending) if slot == 0 else [], None, ReplyMemory(SlotState(), 10, 10**9), SlotState()
        )
    return made


def arrivals(slot: int, count: int, first: int = 0) -> list[Record]:
    request = encode_request(script_request("r", KEYS[slot], "get", ""))
    return [Record(offset, 0, request) for offset in range(first, first + count)]


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
    taken = [counts(three.form(0)[1]) for epoch in range(3)]
    assert taken == [{0: 2, 1: 1, 2: 1}, {1: 2, 2: 1, 0: 1}, {2: 2, 0: 1, 1: 1}]


def test_room_that_one_slot_does_not_use_is_anothers() -> None:
    three = intake(3, Limits(epoch_transactions_max=4))
    three.arrive(2, arrivals(2, 9))
    assert counts(three.form(0)[1]) == {0: 0, 1: 0, 2: 4}
    assert three.backlog == 5


def test_a_log_that_is_behind_takes_no_new_requests() -> None:
    one = intake(1, pending=[carried(1)])
    one.arrive(0, arrivals(0, 5))
    one.pressure.congested = True
    assert one.has_work, "what was carried goes on"
    roots, batches = one.form(0)
    assert ([root.tid for root in roots], counts(batches)) == ([1], {0: 0})
    assert not one.has_work
    one.pressure.congested = False
    assert one.has_work
    assert counts(one.form(0)[1]) == {0: 5}


def test_the_bytes_that_wait() -> None:
    one = intake(1, Limits(epoch_transactions_max=1))
    sent = arrivals(0, 9)
    size = len(sent[0].payload)
    one.arrive(0, sent)
    one.arrive(0, sent)
    assert one.waiting() == {0: (9, 9 * size)}
    one.form(0)
    assert one.waiting() == {0: (8, 8 * size)}


def test_carried_transactions_take_room() -> None:
    one = intake(1, Limits(epoch_transactions_max=2), [carried(1), carried(2), carried(3)])
    one.arrive(0, arrivals(0, 2))
    roots, batches = one.form(3)
    assert ([root.tid for root in roots], counts(batches)) == ([1, 2, 3], {0: 0})
    roots, batches = one.form(3)
    assert ([root.tid for root in roots], counts(batches)) == ([4, 5], {0: 2})


def test_a_slot_with_too_many_parked_transactions_takes_no_more_and_is_no_reason_for_an_epoch() -> None:
    two = intake(2, Limits(parked_max=1), [carried(1, parked=True)])
    [root], _ = two.form(0)
    two.parked[root.tid] = root  # it has come upon another external call
    two.arrive(0, arrivals(0, 1))
    assert not two.has_work
    two.arrive(1, arrivals(1, 1))
    assert two.has_work
    assert counts(two.form(0)[1]) == {0: 0, 1: 1}


def test_a_call_that_is_due_where_too_many_are_parked_is_no_reason_for_an_epoch() -> None:
    two = intake(2, Limits(parked_max=1), [carried(1, parked=True)])
    [root], _ = two.form(0)
    two.parked[root.tid] = root
    entry = AgendaEntry(AT_ONCE, "x", 0, "acc", "get", "a0", b"\x90", 1, 1)
    for slot, works in ((0, False), (1, True)):
        state = SlotState()
        state.table(agenda_of("acc")).write(0, (KEYS[slot], "x"), encode_entry(entry))
        two.deliveries.add_slot(slot, state)
        assert two.has_work is works


def test_an_idle_deployment_has_no_work() -> None:
    one = intake(1)
    assert not one.has_work
    one.arrive(0, arrivals(0, 1))
    assert one.has_work
    one.form(0)
    assert not one.has_work


def test_other_workers_slots_are_no_concern() -> None:
    one = intake(1)
    one.arrive(2, arrivals(2, 1))
    assert one.backlog == 0


# Large results -------------------------------------------------------------------------------------------------


def small(offset: int) -> Record:
    """A request of a function and an entity that have nothing to do with the others'."""
    return Record(offset, 0, encode_request(replace(script_request("s", "b0", "get", ""), function=READ_FUNCTION)))


def large(limits: Limits, n_slots: int = 1, size: int = 400) -> Intake:
    """The scripts' function is known to give so many bytes."""
    made = intake(n_slots, limits)
    other = intake(1)
    other.arrive(0, arrivals(0, 1))
    [root] = other.form(0)[0]
    root.result = b"x" * size
    made.pressure.ended([root], limits.epoch_result_bytes_max + 1)
    return made


def test_small_ones_do_not_wait_behind_large_ones_of_their_slot() -> None:
    one = large(Limits(epoch_result_bytes_max=1000))
    one.arrive(0, [*arrivals(0, 7), small(7)])
    roots, [batch] = one.form(0)
    assert [(root.tid, root.offset) for root in roots] == [(1, 0), (2, 1), (3, 7)]
    assert (batch.next, batch.count, batch.passed) == (8, 3, [2, 3, 4, 5, 6])
    assert one.backlog == 5
    assert one.has_work
    roots, [batch] = one.form(3)
    assert ([(root.tid, root.offset) for root in roots], batch.late) == ([(4, 2), (5, 3)], [2, 3])


def test_what_is_carried_takes_its_room_first() -> None:
    one = large(Limits(epoch_result_bytes_max=1000))
    one.add_slot(0, 0, [carried(1), carried(2)], None, ReplyMemory(SlotState(), 10, 10**9), SlotState())
    one.arrive(0, [*arrivals(0, 1), small(1)])
    assert [root.tid for root in one.form(2)[0]] == [1, 2, 3]
    assert one.backlog == 1


def test_a_log_that_is_behind_takes_none_that_were_passed_over() -> None:
    one = large(Limits(epoch_result_bytes_max=1))
    one.arrive(0, arrivals(0, 2))
    one.form(0)
    one.pressure.congested = True
    assert not one.has_work
    assert one.form(1)[0] == []
    one.pressure.congested = False
    assert [root.tid for root in one.form(1)[0]] == [2]


def test_slots_with_large_results_take_turns_even_if_the_log_is_behind_now_and_then() -> None:
    two = large(Limits(epoch_result_bytes_max=1), n_slots=2)
    for slot in range(2):
        two.arrive(slot, arrivals(slot, 9))
    taken = []
    for epoch in range(8):
        two.pressure.congested = epoch % 2 == 1
        taken += [root.slot for root in two.form(epoch)[0]]
    assert taken == [0, 1, 0, 1]


def test_each_slot_has_its_turn_although_what_is_carried_leaves_no_room_in_every_second_epoch() -> None:
    """As with functions that make an external call first, and then give much."""
    two = large(Limits(epoch_result_bytes_max=1000), n_slots=2)
    for slot in range(2):
        two.arrive(slot, arrivals(slot, 20))
    served = []
    for epoch in range(8):
        roots, _ = two.form(100 * epoch)
        served += [root.slot for root in roots]
        two.carried = [root for root in roots if epoch % 2 == 0]
    assert served.count(0) == served.count(1) > 0


def test_one_that_gives_more_than_is_ever_left_has_its_turn() -> None:
    """Others of 200 bytes are carried once each, as behind an external call, and always leave less than its 900."""
    one = large(Limits(epoch_result_bytes_max=1000), size=900)
    other = intake(1)
    other.arrive(0, [small(0)])
    [root] = other.form(0)[0]
    root.result = b"x" * 200
    one.pressure.ended([root], 1001)
    one.arrive(0, [small(0), *arrivals(0, 1, 1), *map(small, range(2, 60))])
    before = one.form(0)[0]
    one.carried = before[:2]
    for epoch in range(1, 12):
        roots, _ = one.form(100 * epoch)
        if any(root.offset == 1 for root in roots):
            return
        before = [root for root in roots if root not in before]
        one.carried = list(before)
    raise AssertionError("it never had its turn")


@given(st.data())
def test_requests_to_one_entity_keep_their_order_and_all_have_their_turn(data: st.DataObject) -> None:
    one = large(Limits(epoch_result_bytes_max=1000, epoch_transactions_max=4))
    keys, offset, taken = ("a0", "b0", "c0"), 0, list[RootTransaction]()

    def form(epoch: int) -> None:
        roots, _ = one.form(100 * epoch)
        taken.extend(root for root in roots if root not in one.carried)

    for epoch in range(data.draw(st.integers(1, 8))):
        for key in data.draw(st.lists(st.sampled_from(keys), max_size=6)):
            request = script_request("r", key, "get", "")
            if data.draw(st.booleans()):
                request = replace(request, function=READ_FUNCTION)
            one.arrive(0, [Record(offset, 0, encode_request(request))])
            offset += 1
        form(epoch)
    for epoch in range(100, 100 + offset):
        form(epoch)
    assert sorted(root.offset for root in taken) == list(range(offset))
    for key in keys:
        offsets = [root.offset for root in taken if root.key == key]
        assert offsets == sorted(offsets)


def test_in_a_slot_with_too_many_parked_transactions_those_passed_over_wait_and_hold_up_no_other() -> None:
    two = large(Limits(epoch_result_bytes_max=1, parked_max=1), n_slots=2)
    two.arrive(0, arrivals(0, 9))
    [root], _ = two.form(0)
    two.parked[root.tid] = root
    assert two.backlog == 8
    assert not two.has_work
    assert two.form(9) == ([], [SlotBatch(1, 0, 0, 0), SlotBatch(0, 9, 9, 0)])
    two.arrive(1, arrivals(1, 2))
    assert two.has_work
    assert [root.offset for root in two.form(9)[0]] == [0]
    assert [root.offset for root in two.form(10)[0]] == [1], "the full slot's turn is the other's"


def test_while_halted_nothing_goes_on_in_an_epoch_that_others_begin_nor_in_its_replay() -> None:
    held = [carried(1), carried(2, parked=True)]
    live, again = intake(1, pending=held), intake(1, pending=held)
    for each in (live, again):
        each.arrive(0, arrivals(0, 1))
        each.outcome(ExternalDone(2, 0, b"call", b"\x01"))
    live.pressure.halted = True
    assert not live.has_work
    roots, batches = live.form(2)
    assert (roots, live.rest(0)) == ([], (0, held, None))
    assert again.replay(EpochPlan(0, 2, {0: batches[0]}))[0] == []
    live.pressure.halted = False
    for each in (live, again):
        assert each.has_work
        roots, batches = each.form(2)
        assert [root.tid for root in roots] == [1, 2, 3]
        assert batches == [SlotBatch(0, 0, 1, 1, [Resumed(2, {b"call": b"\x01"})])]


@given(st.data())
def test_there_is_work_if_and_only_if_an_epoch_would_not_be_empty(data: st.DataObject) -> None:
    """Else nothing would be left waiting, or empty epochs would follow each other for good."""
    integers, booleans = st.integers(0, 4), st.booleans()
    bytes_max = data.draw(st.sampled_from([1, 1000]))
    two = large(Limits(epoch_result_bytes_max=bytes_max, parked_max=2, epoch_transactions_max=3), n_slots=2)
    end, waits = [0, 0], dict[int, RootTransaction]()
    for epoch in range(8):
        for slot in range(2):
            count = data.draw(integers)
            two.arrive(slot, arrivals(slot, count, end[slot]))
            end[slot] += count
        two.pressure.congested, two.pressure.halted = data.draw(booleans), data.draw(booleans)
        for number in [number for number in waits if data.draw(booleans)]:
            two.outcome(ExternalDone(number, waits.pop(number).slot, b"call", b"\x01"))
        has_work = two.has_work
        roots, batches = two.form(100 * epoch)
        assert has_work == any([roots, *(batch.count or batch.resumed for batch in batches)])
        for root in roots:
            if data.draw(booleans):
                root.external = root.sequential = data.draw(booleans)
                two.defer(root)
                if root.tid in two.parked:
                    waits[root.tid] = root


# Parked transactions -------------------------------------------------------------------------------------------


def test_an_outcome_resumes_its_transaction_once() -> None:
    one = intake(1, pending=[carried(1, parked=True)])
    for _ in range(2):
        one.outcome(ExternalDone(1, 0, b"key", b"outcome"))
    [root], [batch] = one.form(1)
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
    [root], [batch] = one.form(1)
    assert (root.tid, batch.resumed) == (1, [Resumed(1, {})])


# Replay and snapshots ------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=10), st.integers(1, 5))
def test_a_replay_forms_the_same_epochs_with_the_same_tids(deliveries: list[tuple[int, int]], room: int) -> None:
    live = intake(3, Limits(epoch_transactions_max=room))
    plans, formed, counter, arrived = [], [], 0, [0, 0, 0]
    for epoch, (slot, count) in enumerate(deliveries):
        live.arrive(slot, arrivals(slot, count, arrived[slot]))
        arrived[slot] += count
        roots, batches = live.form(counter)
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
        roots, batches = three.form(counter)
        assert min(root.tid for root in roots) > last
        last = max(root.tid for root in roots)
        counter += max(batch.count for batch in batches)


def test_what_rests_is_what_a_snapshot_must_hold() -> None:
    held = [carried(1), carried(2, parked=True)]
    one = intake(1, pending=held)
    assert one.rest(0) == (0, held, None)
    one.arrive(0, arrivals(0, 1))
    roots, _ = one.form(1)
    assert one.rest(0) == (1, [], None), "all are in the epoch"
    one.carried = [root for root in roots if root.tid == 1]
    assert one.rest(0) == (1, [carried(1)], None)


def test_garbage_costs_its_tid_only() -> None:
    one = intake(1)
    one.arrive(0, [Record(0, 0, b"\xc1"), *arrivals(0, 1, first=1)])
    roots, _ = one.form(0)
    assert [(root.tid, root.offset) for root in roots] == [(2, 1)]
    (poison,) = one.take_told()
    assert isinstance(poison, ReportPoison)
    assert (poison.slot, poison.offset) == (0, 0)
    assert one.take_told() == []


def test_a_replay_goes_on_without_what_waits_for_nothing_now() -> None:
    """A function made an external call when it ran first, and does not now: no recovery must end of it."""
    one = intake(1, pending=[carried(1)])
    batches = {0: SlotBatch(0, 0, 0, 0, [Resumed(1, {b"call": b"\x01"}), Resumed(2, {})])}
    roots, _ = one.replay(EpochPlan(5, 3, batches))
    assert [root.tid for root in roots] == [1]
    assert one.take_told() == [NotResumed(0, 1), NotResumed(0, 2)]

"""One slot's sequencer: each offset once, in log order, whatever the log delivers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.log.base import Record
from styx.model.limits import TID_MAX
from styx.sequencer.epoch_record import Resumed, SlotBatch
from styx.sequencer.sequencer import LOOKS_MAX, PASSED_MAX, Recorded, SlotSequencer, slot_of, tid


def arrivals(*offsets: int) -> list[Record]:
    return [Record(offset, 0, b"") for offset in offsets]


def offsets_of(taken: list[Recorded]) -> list[int]:
    return [offset for offset, *_ in taken]


def test_a_batch_takes_the_oldest_up_to_its_limit() -> None:
    sequencer = SlotSequencer(3)
    sequencer.arrive(arrivals(0, 1, 2))
    batch, taken = sequencer.batch(2, 1_000)
    assert (batch, offsets_of(taken)) == (SlotBatch(3, 0, 2, 2), [0, 1])
    batch, taken = sequencer.batch(2, 1_000)
    assert (batch, offsets_of(taken)) == (SlotBatch(3, 2, 3, 1), [2])
    assert sequencer.batch(2, 1_000) == (SlotBatch(3, 3, 3, 0), [])


def test_a_limit_of_nothing_leaves_everything_waiting() -> None:
    sequencer = SlotSequencer(0)
    sequencer.arrive(arrivals(0))
    assert sequencer.batch(0, 1_000) == (SlotBatch(0, 0, 0, 0), [])
    assert len(sequencer.waiting) == 1


@given(st.lists(st.lists(st.integers(0, 20), max_size=8).map(sorted), max_size=8))
def test_redelivery_takes_nothing_twice_and_nothing_out_of_order(deliveries: list[list[int]]) -> None:
    sequencer = SlotSequencer(0)
    for delivery in deliveries:
        sequencer.arrive(arrivals(*delivery))
    _, taken = sequencer.batch(1_000, 1_000)
    offsets = offsets_of(taken)
    assert offsets == sorted(set(offsets))
    assert set(offsets) <= {offset for delivery in deliveries for offset in delivery}


def test_gaps_in_the_offsets_are_no_requests() -> None:
    sequencer = SlotSequencer(0, 5)
    sequencer.arrive(arrivals(5, 8, 9))
    assert sequencer.batch(2, 1_000)[0] == SlotBatch(0, 5, 9, 2)


def test_resumed_transactions_stand_in_the_batch_once() -> None:
    sequencer = SlotSequencer(0)
    sequencer.ready[7] = {b"key": b"outcome"}
    assert sequencer.batch(9, 1_000)[0].resumed == [Resumed(7, {b"key": b"outcome"})]
    assert sequencer.batch(9, 1_000)[0].resumed == []


# Requests for which there is no room ---------------------------------------------------------------------------


def rooms(*fitting: int) -> Callable[[Recorded], bool]:
    """There is room for these offsets."""
    return lambda recorded: recorded[0] in fitting


def test_those_without_room_are_passed_over_and_come_first_when_there_is_some() -> None:
    sequencer = SlotSequencer(0)
    sequencer.arrive(arrivals(0, 1, 2, 3))
    batch, taken = sequencer.batch(9, 0, rooms(1, 3))
    assert (batch, offsets_of(taken)) == (SlotBatch(0, 0, 4, 2, passed=[0, 2]), [1, 3])
    sequencer.arrive(arrivals(4))
    batch, taken = sequencer.batch(9, 0, rooms(2, 4))
    assert (batch, offsets_of(taken)) == (SlotBatch(0, 4, 5, 2, late=[2]), [2, 4])
    batch, taken = sequencer.batch(9, 0)
    assert (batch, offsets_of(taken)) == (SlotBatch(0, 5, 5, 1, late=[0]), [0])
    assert sequencer.count == 0


def test_those_passed_over_take_half_of_a_batch_at_most() -> None:
    sequencer = SlotSequencer(0)
    sequencer.arrive(arrivals(*range(10)))
    sequencer.batch(5, 0, rooms())
    assert offsets_of(sequencer.batch(5, 0)[1]) == [0, 1, 2, 5, 6]


def test_those_passed_over_count_as_waiting() -> None:
    sequencer = SlotSequencer(0)
    sequencer.arrive([Record(0, 0, b"abc"), Record(1, 0, b"de")])
    sequencer.batch(9, 0, rooms(1))
    assert (sequencer.count, sequencer.waiting_bytes) == (1, 3)
    sequencer.batch(9, 0)
    assert (sequencer.count, sequencer.waiting_bytes) == (0, 0)


def test_few_of_those_passed_over_are_looked_at() -> None:
    sequencer = SlotSequencer(0)
    sequencer.arrive(arrivals(*range(2 * LOOKS_MAX)))
    sequencer.batch(2 * LOOKS_MAX, 0, rooms())
    assert offsets_of(sequencer.batch(9, 0, rooms(0, LOOKS_MAX, LOOKS_MAX + 2))[1]) == [0, LOOKS_MAX]


def test_behind_so_many_passed_over_no_other_is_looked_at() -> None:
    sequencer = SlotSequencer(0)
    sequencer.arrive(arrivals(*range(PASSED_MAX + 2)))
    sequencer.batch(PASSED_MAX, 0, rooms())
    assert sequencer.batch(9, 0, rooms(PASSED_MAX))[1] == []
    assert offsets_of(sequencer.batch(9, 0, rooms(1, PASSED_MAX))[1]) == [1, PASSED_MAX]


def test_a_batch_of_nothing() -> None:
    sequencer = SlotSequencer(0)
    sequencer.arrive(arrivals(0, 1))
    sequencer.ready[7] = {}
    sequencer.batch(1, 0, rooms())
    sequencer.ready[8] = {}
    batch = sequencer.nothing()
    assert batch == SlotBatch(0, 1, 1, 0, idle=True)
    assert sequencer.replay(batch) == []
    assert (sequencer.count, sequencer.ready) == (2, {8: {}})


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5), st.frozensets(st.integers(0, 30))), max_size=12),
    st.data(),
)
def test_from_any_snapshot_a_replay_goes_the_same_way(
    epochs: list[tuple[int, int, frozenset[int]]], data: st.DataObject
) -> None:
    """Each step: so many arrive, with a gap behind each; a batch with a limit, and with room for some."""
    live, log = SlotSequencer(0), list[Record]()
    recorded: list[tuple[SlotBatch, list[Recorded]]] = []
    rests = [live.rest()]
    for count, limit, fitting in epochs:
        new = [Record(offset, 0, b"x") for offset in range(2 * len(log), 2 * (len(log) + count), 2)]
        live.arrive(new)
        log += new
        recorded.append(live.batch(limit, 0, rooms(*fitting)))
        rests.append(live.rest())
    begin = data.draw(st.integers(0, len(recorded)))
    next_offset, passed_over = rests[begin]
    again = SlotSequencer(0, next_offset, passed_over)
    assert again.rest() == rests[begin], "nothing has come yet"
    end = next_offset
    for (batch, taken), rest in zip(recorded[begin:], rests[begin + 1 :], strict=True):
        while not again.has_recorded(batch):
            again.arrive([next(arrival for arrival in log if arrival.offset >= end)])
            end = again.expected
        assert again.replay(batch) == taken
        assert again.rest() == rest
    again.arrive([arrival for arrival in log if arrival.offset >= end])
    assert (again.rest(), again.count, again.waiting_bytes) == (live.rest(), live.count, live.waiting_bytes)
    assert again.batch(99, 0) == live.batch(99, 0)


# Replay --------------------------------------------------------------------------------------------------------


def test_a_replay_takes_exactly_what_was_recorded() -> None:
    first = SlotSequencer(0)
    first.arrive(arrivals(0, 2, 3, 4))
    recorded = [first.batch(2, 1_000)[0], first.batch(1, 1_000)[0], first.batch(9, 1_000)[0]]
    again = SlotSequencer(0)
    again.arrive(arrivals(0, 2, 3, 4, 5))
    assert [offsets_of(again.replay(batch)) for batch in recorded] == [[0, 2], [3], [4]]
    assert again.next_offset == 5
    assert offsets_of(list(again.waiting)) == [5]


def test_a_replay_waits_until_all_its_requests_are_there() -> None:
    sequencer = SlotSequencer(0)
    batch = SlotBatch(0, 0, 3, 2)
    sequencer.arrive(arrivals(0))
    assert not sequencer.has_recorded(batch)
    sequencer.arrive(arrivals(2))
    assert sequencer.has_recorded(batch)


def test_an_empty_batch_is_there_at_once() -> None:
    assert SlotSequencer(0, 4).has_recorded(SlotBatch(0, 4, 4, 0))


def test_an_outcome_that_a_replayed_batch_brings_is_not_brought_again() -> None:
    sequencer = SlotSequencer(0)
    sequencer.ready[7] = {b"key": b"outcome"}
    sequencer.replay(SlotBatch(0, 0, 0, 0, [Resumed(7, {b"key": b"outcome"})]))
    assert sequencer.batch(9, 1_000)[0].resumed == []


@pytest.mark.parametrize(
    ("batch", "message"),
    [(SlotBatch(0, 1, 2, 1), "does not start where"), (SlotBatch(0, 0, 2, 1), "other requests than")],
)
def test_a_record_that_does_not_fit_the_log_is_not_replayed(batch: SlotBatch, message: str) -> None:
    sequencer = SlotSequencer(0)
    sequencer.arrive(arrivals(0, 1))
    with pytest.raises(AssertionError, match=message):
        sequencer.replay(batch)


def test_outcomes_that_do_not_fit_wait_for_a_later_epoch() -> None:
    sequencer = SlotSequencer(0)
    sequencer.ready = {7: {b"key": b"12345"}, 9: {b"key": b"1234"}, 11: {b"key": b"1"}}
    assert [resumed.tid for resumed in sequencer.batch(9, 9)[0].resumed] == [7, 9]
    assert [resumed.tid for resumed in sequencer.batch(9, 9)[0].resumed] == [11]


def test_slots_take_turns() -> None:
    assert [tid(slot, 0, 3) for slot in range(3)] == [1, 2, 3]
    assert [tid(slot, 1, 3) for slot in range(3)] == [4, 5, 6]
    assert [tid(0, counter, 1) for counter in range(3)] == [1, 2, 3]


@given(st.integers(1, 1_000), st.data())
def test_a_tid_tells_its_slot(n_slots: int, data: st.DataObject) -> None:
    slot = data.draw(st.integers(0, n_slots - 1))
    counter = data.draw(st.integers(0, 2**50))
    assert slot_of(tid(slot, counter, n_slots), n_slots) == slot


@given(st.integers(1, 64), st.integers(0, 2**40), st.data())
def test_every_tid_of_a_later_counter_is_greater(n_slots: int, counter: int, data: st.DataObject) -> None:
    early, late = (data.draw(st.integers(0, n_slots - 1)) for _ in range(2))
    assert tid(early, counter, n_slots) < tid(late, counter + 1, n_slots)


def test_the_last_tid_is_64_bits_signed() -> None:
    assert tid(0, TID_MAX - 1, 1) == TID_MAX
    with pytest.raises(AssertionError, match="exhausted"):
        tid(0, TID_MAX, 1)

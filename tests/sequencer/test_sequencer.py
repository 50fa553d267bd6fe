"""One slot's sequencer: each offset once, in log order, whatever the log delivers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.sequencer.arrival import Arrival, Recorded
from styx.sequencer.epoch_record import Resumed, SlotBatch
from styx.sequencer.sequencer import SlotSequencer


def arrivals(*offsets: int) -> list[Arrival]:
    return [Arrival(offset, 0, b"") for offset in offsets]


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

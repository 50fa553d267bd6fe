"""Which recorded epochs a recovery replays: complete ones, of the newest generation that recorded them, gapless."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.sequencer.epoch_record import (
    EpochPlan,
    EpochRecord,
    GenerationMarker,
    Resumed,
    SlotBatch,
    Verdicts,
    decode,
    encode,
    replay_plan,
)

Records = list[EpochRecord | GenerationMarker | Verdicts]


def record(generation: int, epoch: int, *slots: int, count: int = 1, counter: int = 0) -> EpochRecord:
    return EpochRecord(generation, epoch, counter, [SlotBatch(slot, 0, count, count) for slot in slots])


def marker(generation: int, snapshot_epoch: int = -1) -> GenerationMarker:
    return GenerationMarker(generation, snapshot_epoch)


def planned(records: Records, n_slots: int, generation: int, after: tuple[int, int] = (-1, -1)) -> list[int]:
    """Epochs in the plan; `after`: (epoch, generation) of the snapshot."""
    return [plan.epoch for plan in replay_plan(records, n_slots, after[0], after[1], generation)]


def test_records_survive_the_log() -> None:
    whole = EpochRecord(3, 4, 5, [SlotBatch(0, 1, 3, 2, [Resumed(9, {b"k": b"o"})]), SlotBatch(1, 0, 0, 0)])
    assert decode(encode(whole)) == whole
    assert decode(encode(marker(3, 2))) == marker(3, 2)


@pytest.mark.parametrize("garbage", [b"", b"\xc1", b"\x90", b"\x93\x09\x01\x01", encode(record(1, 0, 0))[:-1]])
def test_garbage_is_an_error_and_nothing_else(garbage: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(garbage)


def test_an_epoch_is_complete_when_its_records_cover_every_slot() -> None:
    records: Records = [marker(1), record(1, 0, 0), record(1, 0, 1), record(1, 1, 0), marker(2)]
    assert planned(records, 2, 2) == [0]


def test_a_plan_has_every_slots_batch_and_the_counter() -> None:
    records: Records = [record(1, 0, 1, count=2, counter=7), record(1, 0, 0, count=3, counter=7), marker(2)]
    batches = {0: SlotBatch(0, 0, 3, 3), 1: SlotBatch(1, 0, 2, 2)}
    assert replay_plan(records, 2, -1, -1, 2) == [EpochPlan(0, 7, batches, last=True, open=[1, 0])]


TOO_LONG = ("aborted", "FunctionTooLong", "f ran 10 s")


def test_verdicts_are_of_their_epoch_wherever_they_stand_in_its_generation() -> None:
    records: Records = [
        *(record(1, 0, 0), Verdicts(1, 0, [(1, TOO_LONG)], []), record(1, 0, 1), Verdicts(1, 0, [], [3])),
        *(record(1, 1, 0, 1), Verdicts(1, 0, [(5, None)], []), marker(2)),
    ]
    first, second = replay_plan(records, 2, -1, -1, 2)
    assert (first.ended, first.unlocked, first.last) == ({1: TOO_LONG, 5: None}, [3], False)
    assert (second.ended, second.unlocked, second.last) == ({}, [], True)


def test_a_generation_that_ran_a_recorded_epoch_again_can_give_verdicts_of_it() -> None:
    records: Records = [record(1, 0, 0), marker(2), Verdicts(2, 0, [(1, TOO_LONG)], []), record(2, 1, 0), marker(3)]
    assert [plan.ended for plan in replay_plan(records, 1, -1, -1, 3)] == [{1: TOO_LONG}, {}]


def test_verdicts_of_an_epoch_that_was_recorded_anew_are_void() -> None:
    records: Records = [record(1, 0, 0), Verdicts(1, 0, [(1, TOO_LONG)], [3]), marker(2), record(2, 0, 0, 1), marker(3)]
    assert replay_plan(records, 2, -1, -1, 3)[0].ended == {}
    behind: Records = [marker(2), Verdicts(1, 0, [(1, TOO_LONG)], []), record(2, 0, 0), marker(3)]
    assert replay_plan(behind, 1, -1, -1, 3)[0].ended == {}


def test_records_of_an_older_generation_behind_a_newer_ones_marker_are_void() -> None:
    records: Records = [marker(1), record(1, 0, 0), marker(2), record(1, 0, 1), marker(3)]
    assert planned(records, 2, 3) == []


def test_an_epoch_left_incomplete_is_recorded_anew_by_the_next_generation() -> None:
    records: Records = [record(1, 0, 0, count=1), marker(2), record(2, 0, 0, 1, count=5), marker(3)]
    [plan] = replay_plan(records, 2, -1, -1, 3)
    assert [batch.count for batch in plan.batches.values()] == [5, 5]


def test_halves_of_two_generations_do_not_make_a_whole() -> None:
    records: Records = [record(1, 0, 0), marker(2), record(2, 0, 1), marker(3)]
    assert planned(records, 2, 3) == []


def test_nothing_behind_the_own_marker_counts() -> None:
    records: Records = [marker(1), record(1, 0, 0), marker(2), record(2, 1, 0), record(1, 1, 0)]
    assert planned(records, 1, 2) == [0]


def test_a_generation_that_has_only_a_marker_changes_nothing() -> None:
    records: Records = [marker(1), record(1, 0, 0), marker(2), marker(3), record(3, 1, 0), marker(4)]
    assert planned(records, 1, 4) == [0, 1]


def test_a_replay_starts_behind_its_snapshot() -> None:
    records: Records = [record(1, 0, 0), record(1, 1, 0), record(1, 2, 0), marker(2)]
    assert planned(records, 1, 2, after=(0, 1)) == [1, 2]
    assert planned(records, 1, 2, after=(2, 1)) == []


def test_records_older_than_the_snapshots_generation_are_void() -> None:
    # The log is released up to the snapshot, the older marker with it; a zombie's record may stand behind that.
    records: Records = [record(1, 1, 0, count=9), record(2, 1, 0), marker(3)]
    [plan] = replay_plan(records, 1, 0, 2, 3)
    assert plan.batches[0].count == 1


def test_there_is_no_gap_in_a_plan() -> None:
    records: Records = [record(1, 0, 0), record(1, 2, 0), marker(2)]
    assert planned(records, 1, 2) == [0]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4), st.sets(st.integers(0, 1), min_size=1)), max_size=12))
def test_a_plan_never_has_gaps_halves_or_void_records(drawn: list[tuple[int, int, set[int]]]) -> None:
    # Whatever stands in the log, in any order: a generation's marker stands before its records.
    records: Records = []
    for generation, epoch, slots in drawn:
        if marker(generation) not in records:
            records.append(marker(generation))
        records.append(record(generation, epoch, *sorted(slots), count=generation))
    plans = replay_plan(records, 2, -1, -1, 5)
    assert [plan.epoch for plan in plans] == list(range(len(plans)))
    for plan in plans:
        assert plan.batches.keys() == {0, 1}
        assert len({batch.count for batch in plan.batches.values()}) == 1, "two generations in one epoch"
    generations = [plan.batches[0].count for plan in plans]
    assert generations == sorted(generations)


def test_an_epoch_is_not_the_last_if_any_worker_had_begun_another() -> None:
    def last(*more: EpochRecord | GenerationMarker) -> list[bool]:
        return [plan.last for plan in replay_plan([*complete, *more], 2, -1, -1, 9)]

    complete: Records = [marker(1), record(1, 0, 0), record(1, 0, 1)]
    assert last() == [True]
    assert last(record(1, 1, 1)) == [False]
    assert last(record(1, 1, 1), marker(2)) == [False], "its own requests are formed anew"
    assert last(marker(2), record(1, 1, 1)) == [True], "void: whoever wrote it had been fenced"


def test_a_slot_has_ended_an_epoch_if_its_own_worker_began_a_later_one() -> None:
    """Local transactions of other slots may run even then."""
    complete: Records = [record(1, 0, 0), record(1, 0, 1)]

    def open_slots(*more: EpochRecord | GenerationMarker) -> list[list[int]]:
        return [plan.open for plan in replay_plan([*complete, *more], 2, -1, -1, 9)]

    assert open_slots() == [[0, 1]]
    assert open_slots(record(1, 1, 1)) == [[0]]
    assert open_slots(record(1, 1, 1), marker(2)) == [[0]]
    assert open_slots(marker(2), record(1, 1, 1)) == [[0, 1]], "void: whoever wrote it had been fenced"
    assert open_slots(record(1, 1, 1), record(1, 1, 0)) == [[], [1, 0]]

"""When the coordinator has the logs of events marked."""

from __future__ import annotations

from styx.coordinator.event_marks import MARK_SECONDS_MAX, MARK_SECONDS_MIN, PARTITIONS_PER_SECOND, EventMarks
from styx.coordinator.generation import Generation


def test_marks_are_made_when_some_are_missing_and_never_often() -> None:
    marks = EventMarks()
    assert not marks.due(1.0)
    marks.want(4)
    assert marks.due(1.0)
    assert not marks.due(2.0)
    marks.want(4)
    marks.want(4)
    assert marks.due(2.0)
    marks.want(4)
    assert not marks.due(2.0 + MARK_SECONDS_MIN / 2)
    assert marks.due(2.0 + 2 * MARK_SECONDS_MIN)


def test_many_partitions_are_marked_less_often() -> None:
    marks = EventMarks()
    marks.want(PARTITIONS_PER_SECOND // 2)
    assert marks.due(1.0)
    marks.want(PARTITIONS_PER_SECOND // 2)
    assert not marks.due(1.45)
    assert marks.due(1.55)
    marks.want(100 * PARTITIONS_PER_SECOND)
    assert not marks.due(1.5 + MARK_SECONDS_MAX)
    assert marks.due(1.6 + MARK_SECONDS_MAX)


def test_no_mark_amid_a_replay() -> None:
    generation = Generation(replay_until=7)
    generation.marks.want(4)
    assert not generation.mark_due(1.0, 6)
    assert generation.mark_due(1.0, 7)

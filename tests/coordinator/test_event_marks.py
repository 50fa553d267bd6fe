"""When the coordinator has the logs of events marked."""

from __future__ import annotations

from styx.coordinator.event_marks import MARK_SECONDS_MIN, EventMarks
from styx.coordinator.generation import Generation


def test_marks_are_made_when_some_are_missing_and_never_often() -> None:
    marks = EventMarks()
    assert not marks.due(1.0)
    marks.want()
    assert marks.due(1.0)
    assert not marks.due(2.0)
    marks.want()
    marks.want()
    assert marks.due(2.0)
    marks.want()
    assert not marks.due(2.0 + MARK_SECONDS_MIN / 2)
    assert marks.due(2.0 + 2 * MARK_SECONDS_MIN)


def test_no_mark_amid_a_replay() -> None:
    generation = Generation(replay_until=7)
    generation.marks.want()
    assert not generation.mark_due(1.0, 6)
    assert generation.mark_due(1.0, 7)

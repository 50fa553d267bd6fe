"""Marks on one worker: each behind the events of its epoch, and asked for once."""

from __future__ import annotations

from styx.protocol.messages import Emitted
from styx.worker.event_marks import EventMarks
from styx.worker.events import MarkEvents, Tell

TOLD_5 = Tell(Emitted(3, 5, 32))


def test_a_generation_asks_for_a_mark_at_once() -> None:
    marks = EventMarks(3, 32)
    assert marks.begin(4) == [Tell(Emitted(3, 4, 32))]
    assert marks.closed(5, emitted=True) == [], "it has asked"
    assert marks.wanted(5) == [MarkEvents(5)]


def test_the_first_generation_has_nothing_to_mark() -> None:
    assert EventMarks(3, 32).begin(-1) == []


def test_an_epoch_without_events_asks_for_nothing() -> None:
    marks = EventMarks(3, 32)
    assert marks.closed(4, emitted=False) == []
    assert marks.closed(5, emitted=True) == [TOLD_5]
    assert marks.closed(6, emitted=True) == [], "it has asked"


def test_a_mark_waits_for_its_epoch() -> None:
    marks = EventMarks(3, 32)
    marks.closed(4, emitted=True)
    assert marks.wanted(5) == []
    assert marks.closed(5, emitted=True) == [MarkEvents(5)]


def test_events_behind_the_mark_ask_for_another() -> None:
    marks = EventMarks(3, 32)
    marks.closed(4, emitted=True)
    marks.closed(5, emitted=True)
    assert marks.wanted(4) == [MarkEvents(4), TOLD_5]
    assert marks.wanted(5) == [MarkEvents(5)]
    assert marks.closed(6, emitted=False) == []

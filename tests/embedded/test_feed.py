"""What of the log is given to a worker that recovers."""

from __future__ import annotations

from styx.embedded_engine.recovery import Feed
from styx.log.base import Stream
from styx.log.memory import MemoryLog


def _offsets(feed: Feed) -> dict[int, list[int]]:
    given: dict[int, list[int]] = {}
    while not feed.exhausted:
        for arrived in feed.take():
            given.setdefault(arrived.slot, []).extend(offset for offset, _, _ in arrived.arrivals)
    return given


def _log() -> MemoryLog:
    log = MemoryLog()
    for number in range(12):
        log.append(Stream.REQUESTS, number % 2, 0, b"%d" % number)
    log.flush()
    return log


def test_everything_behind_the_snapshot() -> None:
    assert _offsets(Feed(_log(), 1, {0: 0, 1: 4})) == {0: [0, 1, 2, 3, 4, 5], 1: [4, 5]}


def test_nothing_beyond_what_recorded_epochs_name() -> None:
    assert _offsets(Feed(_log(), 1, {0: 0, 1: 4}, {0: 3, 1: 4})) == {0: [0, 1, 2]}

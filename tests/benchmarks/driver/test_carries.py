"""How often transactions were carried, from epoch records and replies."""

from __future__ import annotations

import pytest

from benchmarks.driver.carries import Carries, carries
from styx.messages import Reply
from styx.sequencer.epoch_record import EpochRecord, GenerationMarker, LogEntry

SLOTS = 2
RECORDS: list[LogEntry] = [
    GenerationMarker(0, -1),
    EpochRecord(0, 0, 0, []),  # slots give the TIDs 1 to 6
    EpochRecord(0, 1, 3, []),  # nothing new
    EpochRecord(0, 2, 3, []),  # 7 and 8
    EpochRecord(0, 2, 3, []),  # of another worker
    EpochRecord(0, 3, 4, []),
]


def reply(tid: int, epoch: int) -> Reply:
    return Reply(None, None, tid, epoch, 2, "r")


def test_the_distance_from_the_tids_epoch_to_the_replys() -> None:
    found = carries(RECORDS, [reply(1, 0), reply(4, 1), reply(6, 4), reply(7, 2), reply(8, 3)], SLOTS)
    assert found == Carries(transactions=5, carried=3, mean=2.0, median=1, most=4, epochs=5)
    assert found.share == 0.6


def test_without_replies_there_is_nothing() -> None:
    assert carries(RECORDS, [], SLOTS) == Carries(0, 0, 0.0, 0.0, 0, 0)
    assert carries(RECORDS, [], SLOTS).share == 0


def test_records_that_begin_too_late_are_refused() -> None:
    with pytest.raises(ValueError, match="no epoch record is old enough for transaction 2"):
        carries(RECORDS[3:], [reply(2, 2)], SLOTS)

"""Partitions of events merged by their marks: nothing is given too early, twice, or in another order."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from styx.kafka import event_merge
from styx.kafka.event_merge import EventMerge, Unreadable, message_of, place_of
from styx.model.agenda import LOCAL_PART
from styx.model.event_seen import EventMessage, checked_cursor, cursor_of
from styx.model.serial_id import event_id


def event(epoch: int, tid: int, phase: int = 1) -> EventMessage:
    its_id = f"{epoch:012x}0{tid:016x}.00000001"
    return EventMessage(
        event="e",
        version=1,
        id=its_id,
        epoch=epoch,
        phase=phase,
        tid=tid,
        operator="o",
        key="k",
        time_us=0,
        value=msgspec.Raw(b"1"),
    )


def record(*headers: tuple[str, bytes | None], value: bytes | None = b"1") -> Any:
    return SimpleNamespace(headers=headers, value=value, offset=7, partition=1, topic="t")


HEADERS: list[tuple[str, bytes | None]] = [
    ("styx-id", b"000000000003" + b"0" * 17 + b".00000001"),
    ("styx-epoch", b"3"),
    ("styx-phase", b"2"),
    ("styx-tid", b"5"),
    ("styx-version", b"4"),
    ("styx-time", b"9"),
    ("styx-operator", b"order"),
    ("styx-key", b'["a",1]'),
    ("content-type", b"application/json"),
]


def test_a_record_is_an_event_or_a_mark() -> None:
    found = message_of("paid", record(*HEADERS))
    assert isinstance(found, EventMessage)
    assert (found.event, found.epoch, found.phase, found.tid, found.version) == ("paid", 3, 2, 5, 4)
    assert (found.operator, found.key, found.time_us, bytes(found.value)) == ("order", ["a", 1], 9, b"1")
    assert message_of("paid", record(("styx-mark", b"12"), value=None)) == 12


@pytest.mark.parametrize("left_out", range(8))
def test_what_lacks_a_header_is_unreadable(left_out: int) -> None:
    headers = [each for at, each in enumerate(HEADERS) if at != left_out]
    with pytest.raises(Unreadable, match="offset 7 of partition 1 of t"):
        message_of("paid", record(*headers))


@pytest.mark.parametrize(
    "wrong", [("styx-epoch", b"x"), ("styx-key", b"{}"), ("styx-mark", b"x"), ("styx-tid", None), ("styx-id", b"\xff")]
)
def test_what_has_another_header_is_unreadable(wrong: tuple[str, bytes | None]) -> None:
    with pytest.raises(Unreadable):
        message_of("paid", record(*[each for each in HEADERS if each[0] != wrong[0]], wrong))


def test_a_mark_is_behind_its_epoch_and_before_the_next() -> None:
    for epoch in (0, 1, 15, 16, 2**40):
        assert event(epoch, 2**62, 3).cursor < place_of(epoch) < event(epoch + 1, 1).cursor
        assert checked_cursor(place_of(epoch)) == place_of(epoch)


def test_nothing_is_given_before_all_partitions_are_marked() -> None:
    merge = EventMerge([0, 1], None)
    merge.take(0, [event(1, 5), event(2, 7), 2])
    assert merge.ready() == []
    merge.take(1, [event(1, 3), 1])
    assert [each.tid for each in merge.ready()] == [3, 5]
    assert merge.gathered == 1
    merge.take(1, [event(2, 6), 3])
    assert [each.tid for each in merge.ready()] == [6, 7]
    assert merge.gathered == 0


def test_phases_come_before_tids() -> None:
    merge = EventMerge([0, 1], None)
    merge.take(0, [event(1, 5, 1), event(1, 2, 2), 1])
    merge.take(1, [event(1, 9, 1), event(1, 1, 3), 1])
    assert [(each.phase, each.tid) for each in merge.ready()] == [(1, 5), (1, 9), (2, 2), (3, 1)]


def test_what_the_reader_has_is_left_out() -> None:
    merge = EventMerge([0], event(1, 5).cursor)
    merge.take(0, [event(1, 4), event(1, 5), event(1, 6), 1])
    assert [each.tid for each in merge.ready()] == [6]


def test_however_it_comes_the_order_is_the_same() -> None:
    for seed in range(50):
        draw = random.Random(seed)
        parts: dict[int, list[EventMessage | int]] = {0: [], 1: [], 2: []}
        everything: list[EventMessage] = []
        for epoch in range(30):
            for partition, records in parts.items():
                some = sorted(
                    [event(epoch, draw.randrange(10**6) * 3 + partition) for _ in range(draw.randrange(4))],
                    key=lambda each: each.cursor,
                )
                records.extend(some)
                everything += some
            if epoch == 29 or draw.random() < 0.3:
                for records in parts.values():
                    records.append(epoch)
        merge, given = EventMerge(parts, None), []
        while any(parts.values()):
            partition = draw.choice([each for each, records in parts.items() if records])
            count = draw.randrange(1, 5)
            merge.take(partition, parts[partition][:count])
            del parts[partition][:count]
            given += merge.ready()
        assert given == sorted(everything, key=lambda each: each.cursor)


def test_a_partition_that_is_far_ahead_waits_and_the_last_one_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_merge, "GATHERED_MAX", 3)
    merge = EventMerge([0, 1], None)
    merge.take(0, [event(1, each) for each in range(3)])
    assert merge.wanted == [0, 1], "its own mark may be what is missing"
    merge.take(0, [1])
    assert merge.wanted == [1]
    merge.take(1, [event(1, 90 + each) for each in range(9)])
    assert merge.wanted == [1]
    merge.take(1, [1])
    assert len(merge.ready()) == 12
    assert merge.wanted == [0, 1]


def test_so_does_one_with_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_merge, "GATHERED_BYTES_MAX", 3)
    merge = EventMerge([0, 1], None)
    merge.take(0, [event(1, 1), event(1, 2), event(1, 3), 1])
    assert merge.wanted == [1]
    merge.take(1, [1])
    assert len(merge.ready()) == 3
    assert merge.wanted == [0, 1]


def test_a_mark_is_behind_all_events_of_its_epoch() -> None:
    last = cursor_of(7, 3, event_id(7, LOCAL_PART, 2**63 - 1, b"\xfd\xe9" * 99, 2**32 - 1))
    assert last < place_of(7) < cursor_of(8, 0, "")
    assert checked_cursor(place_of(7)) == place_of(7)

"""The judge of topics of events finds what it is there to find: each planted fault, in topics made by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from proof.cluster.event_judge import (
    Cut,
    Emission,
    Sums,
    TopicRecord,
    Topics,
    cut_problems,
    emitted_problems,
    mark_problems,
    number_problems,
    order_problems,
    paired_problems,
    parsed,
)
from proof.cluster.plain_reader import once

Change = Callable[[list[TopicRecord]], Any]


def record(partition: int, offset: int, epoch: int, account: int, number: int, amount: int) -> TopicRecord:
    its_id = f"{epoch:012x}.{account}.{number}"
    headers = {
        "styx-id": its_id,
        "styx-epoch": str(epoch),
        "styx-phase": "1",
        "styx-tid": str(10 * epoch + account),
        "styx-version": "2",
        "styx-time": str(1_000_000 * epoch),
        "styx-operator": "account",
        "styx-key": str(account),
        "content-type": "application/json",
    }
    value = json.dumps({"account": account, "number": number, "amount": amount}).encode()
    told = tuple((name, text.encode()) for name, text in headers.items())
    return TopicRecord("moved", partition, offset, str(account).encode(), value, told)


def mark(partition: int, offset: int, epoch: int) -> TopicRecord:
    return TopicRecord("moved", partition, offset, None, None, (("styx-mark", str(epoch).encode()),))


def right() -> list[TopicRecord]:
    """Two partitions with an account each: three events and two marks in both."""
    return [
        record(0, 0, 3, 7, 1, -5),
        record(0, 1, 3, 7, 2, 8),
        mark(0, 2, 4),
        record(0, 3, 6, 7, 3, 1),
        mark(0, 4, 6),
        record(1, 0, 2, 8, 1, 5),
        record(1, 1, 4, 8, 2, -8),
        mark(1, 2, 4),
        record(1, 3, 6, 8, 3, -1),
        mark(1, 4, 6),
    ]


def emitted() -> list[Emission]:
    """What a serial execution emits, in serial order."""
    return sorted(parsed(right()).events("moved"), key=lambda each: each.place)


CUTS = [
    Cut(4, "a snapshot", {7: (2, 3), 8: (2, -3)}, True),
    Cut(3, "a look", {8: (1, 5)}, False),
    Cut(5, "a look", {7: (2, 3), 9: (0, 0)}, False),
    Cut(6, "a snapshot", {7: (3, 4), 8: (3, -4)}, True),
]


def problems_of(topics: Topics) -> dict[str, list[str]]:
    found = {
        "parsed": topics.problems,
        "order": order_problems(topics),
        "marks": mark_problems(topics),
        "emitted": emitted_problems(topics, emitted()),
        "numbers": number_problems(topics.events("moved")),
        "cuts": cut_problems(Sums(topics, "moved"), CUTS),
    }
    return {name: problems for name, problems in found.items() if problems}


def test_topics_that_are_right() -> None:
    assert problems_of(parsed(right())) == {}
    assert Sums(parsed(right()), "moved").last_mark == 6


def _with_headers(at: int, **changed: bytes | None) -> Change:
    def change(records: list[TopicRecord]) -> None:
        headers = {**dict(records[at].headers), **{name.replace("_", "-"): value for name, value in changed.items()}}
        kept = tuple((name, value) for name, value in headers.items() if value is not None)
        records[at] = records[at]._replace(headers=kept)

    return change


def _written_twice(records: list[TopicRecord]) -> None:
    records.insert(2, records[1])


def _written_again_later(records: list[TopicRecord]) -> None:
    records.insert(5, records[0]._replace(offset=5))


def _swapped(records: list[TopicRecord]) -> None:
    records[0], records[1] = records[1], records[0]


def _left_out(records: list[TopicRecord]) -> None:
    del records[1]


def _of_an_abort(records: list[TopicRecord]) -> None:
    records.insert(2, record(0, 2, 4, 7, 3, 100))


def _mark_one_epoch_late(records: list[TopicRecord]) -> None:
    records[7] = mark(1, 2, 6)  # it stands before an event of epoch 6


def _mark_before_its_events(records: list[TopicRecord]) -> None:
    records[6], records[7] = records[7], records[6]


def _marks_descend(records: list[TopicRecord]) -> None:
    records[9] = mark(1, 4, 3)


def _no_mark_at_the_end(records: list[TopicRecord]) -> None:
    del records[4]


def _another_partition(records: list[TopicRecord]) -> None:
    records[3] = records[3]._replace(partition=1)


def _another_value(records: list[TopicRecord]) -> None:
    records[5] = records[5]._replace(value=b'{"account":8,"number":1,"amount":6}')


def _a_mark_with_a_key(records: list[TopicRecord]) -> None:
    records[2] = records[2]._replace(key=b"7")


@pytest.mark.parametrize(
    ("change", "judges"),
    [
        (_written_twice, {"order", "emitted", "numbers", "cuts"}),
        (_written_again_later, {"order", "marks", "emitted", "numbers"}),
        (_swapped, {"order", "emitted"}),
        (_left_out, {"emitted", "numbers", "cuts"}),
        (_of_an_abort, {"emitted", "numbers", "cuts"}),
        (_mark_one_epoch_late, {"marks", "cuts"}),
        (_mark_before_its_events, {"marks", "cuts"}),
        (_marks_descend, {"marks"}),
        (_no_mark_at_the_end, {"marks"}),
        (_another_partition, {"order", "emitted"}),
        (_another_value, {"emitted", "cuts"}),
        (_a_mark_with_a_key, {"parsed"}),
        (_with_headers(0, styx_time=b"9"), {"emitted"}),
        (_with_headers(0, styx_version=b"1"), {"emitted"}),
        (_with_headers(0, styx_tid=b"99"), {"emitted"}),
        (_with_headers(0, styx_operator=b"other"), {"emitted"}),
        (_with_headers(0, styx_epoch=b"x"), {"parsed"}),
        (_with_headers(0, styx_key=b"8"), {"parsed"}),
        (_with_headers(0, content_type=b"text/plain"), {"parsed"}),
        (_with_headers(0, styx_phase=None), {"parsed"}),
        (_with_headers(0, more=b"1"), {"parsed"}),
    ],
)
def test_each_planted_fault_is_found(change: Change, judges: set[str]) -> None:
    records = right()
    change(records)
    found = problems_of(parsed(records))
    assert found.keys() >= judges
    assert all(isinstance(problem, str) and problem for problems in found.values() for problem in problems)


def test_an_event_counts_from_the_first_mark_on_that_it_stands_before() -> None:
    records = right()
    _mark_before_its_events(records)
    sums = Sums(parsed(records), "moved")
    assert [sums.at(8, epoch) for epoch in (1, 2, 4, 5, 6)] == [(0, 0), (1, 5), (1, 5), (2, -3), (3, -4)]


def test_a_whole_cut_has_every_account_that_has_emitted() -> None:
    sums = Sums(parsed(right()), "moved")
    assert cut_problems(sums, [Cut(4, "a snapshot", {7: (2, 3)}, True)])
    assert not cut_problems(sums, [Cut(4, "a look", {7: (2, 3)}, False)])
    assert not cut_problems(sums, [Cut(7, "behind the last mark", {7: (9, 9)}, False)])


def test_what_was_emitted_and_heard_in_one_transaction() -> None:
    first, *rest = emitted()
    told = [each._replace(value="x") for each in (first, *rest)]
    heard = [each._replace(event="tallied") for each in told]
    assert paired_problems(told, heard) == []
    assert len(paired_problems(told, heard[1:])) == 1
    assert len(paired_problems(told, [*heard, heard[0]])) == 1
    assert len(paired_problems(told, [heard[0]._replace(tid=1), *heard[1:]])) == 2


def test_uncommitted_records_without_what_stands_there_again() -> None:
    records = right()[:5]
    again = [records[0], records[1], *records]
    assert once(again) == records

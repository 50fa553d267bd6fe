"""The audit of a cluster finds what it is there to find, in topics made by hand."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from proof.cluster.audit import AuditFailed, answered_once, check_told
from proof.cluster.faults import longest_silence
from proof.cluster.recorded import RequestAt, Topics
from styx.messages import ReplyRecord, Request, reply_of

N_SLOTS = 2


def request_at(offset: int, request_id: str) -> RequestAt:
    return RequestAt(offset, 1_000 + offset, Request(request_id, "account", "a", "credit", b"\x91\x01"))


def reply(request_id: str, sequence: int, tid: int | None = None) -> ReplyRecord:
    return ReplyRecord(request_id, sequence, sequence if tid is None else tid, 1, 1, b"\x01")


def topics(replies: list[ReplyRecord]) -> Topics:
    """Slot 0 has two records of one request, sent again, and slot 1 one of another; offset 1 of slot 0 is garbage."""
    requests = {0: [request_at(0, "twice"), request_at(2, "twice")], 1: [request_at(0, "other")]}
    return Topics(requests, {0: 3, 1: 1}, 1, replies, {})


ANSWERS = [reply("other", 2), reply("twice", 1), reply("twice", 3, tid=1)]


def test_each_record_has_its_own_reply() -> None:
    requests, replies = answered_once(topics(ANSWERS), N_SLOTS)
    assert {name: request.request_id for name, (request, _) in requests.items()} == {
        "0/0": "twice",
        "0/2": "twice",
        "1/0": "other",
    }
    assert {each.request_id: each.sequence for each in replies} == {"0/0": 1, "0/2": 3, "1/0": 2}


@pytest.mark.parametrize(
    ("replies", "told"),
    [
        (ANSWERS[:2], "slot 0 has 2 requests and 1 replies"),
        ([*ANSWERS, ANSWERS[0]], "given twice"),
        ([*ANSWERS, reply("other", 4)], "slot 1 has 1 requests and 2 replies"),
        ([reply("other", 2), reply("other", 1), reply("twice", 3)], "slot 0, offset 0: request twice has no reply"),
    ],
)
def test_a_missing_a_second_and_a_wrong_reply_are_found(replies: list[ReplyRecord], told: str) -> None:
    with pytest.raises(AuditFailed, match=told):
        answered_once(topics(replies), N_SLOTS)


def test_what_clients_were_told_must_be_recorded() -> None:
    given = [reply_of(ANSWERS[0]), reply_of(ANSWERS[1]), reply_of(ANSWERS[2])]
    check_told(given, ANSWERS)
    with pytest.raises(AuditFailed, match="1 replies were given"):
        check_told(given, [replace(ANSWERS[0], result=b"\x02"), *ANSWERS[1:]])
    with pytest.raises(AuditFailed, match="1 replies were given"):
        check_told(given, [replace(ANSWERS[0], epoch=2), *ANSWERS[1:]])
    with pytest.raises(AuditFailed, match="2 replies were given"):
        check_told(given, ANSWERS[:1])


def test_the_longest_silence_begins_and_ends_where_it_was_asked_for() -> None:
    times = [1.0, 2.0, 2.5, 6.0, 6.5]
    assert longest_silence(times, 2.0, 7.0) == 3.5
    assert longest_silence(times, 3.0, 7.0) == 3.0
    assert longest_silence(times, 6.25, 9.0) == 2.5
    assert longest_silence([], 1.0, 4.0) == 3.0

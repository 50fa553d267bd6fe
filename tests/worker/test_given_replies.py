"""What a recovery keeps of the replies that stand in the log."""

from __future__ import annotations

import pytest

from styx.messages import ReplyRecord, Request, encode_reply, encode_request
from styx.protocol.messages import NOTHING
from styx.worker.given_replies import (
    CAUSES,
    FUNCTIONS_TOLD_MAX,
    FURTHER,
    TOLD_MAX,
    WORDED_DIFFERENTLY,
    GivenReplies,
    Told,
    causes,
    contradicts,
    difference,
    given_replies,
    is_given,
    not_resumed,
    reply_digest,
)

EARLY, LATE, LARGE = (
    encode_reply(ReplyRecord("r", tid, tid, epoch, phase, result))
    for tid, epoch, phase, result in ((3, 7, 2, b"\x05"), (5, 8, 1, b"\x06"), (7, 7, 1, b"\xc4\x40" + b"x" * 64))
)


def test_records_by_sequence_and_how_far_they_reach() -> None:
    assert given_replies([]) == GivenReplies({}, NOTHING)
    assert given_replies([EARLY, LATE, LARGE]) == GivenReplies({3: EARLY, 5: LATE, 7: LARGE}, (8, 1))


def test_so_many_bytes_are_kept_and_digests_of_the_others() -> None:
    found = given_replies([EARLY, LARGE, LATE], bytes_max=len(EARLY) + len(LATE))
    assert found.replies == {3: EARLY, 7: reply_digest(LARGE), 5: LATE}


def test_of_another_workers_only_digests() -> None:
    found = given_replies([EARLY, LATE], lambda sequence: sequence == 3)
    assert found.replies == {3: EARLY, 5: reply_digest(LATE)}


REQUEST = encode_request(Request("r1", "seat", [7, "12A"], "book", b"\x90"))
FIVE = ReplyRecord("r1", 3, 3, 7, 1, b"\x05")
SIX = ReplyRecord("r1", 3, 3, 7, 1, b"\x06")
ABORT = ReplyRecord("r1", 3, 3, 7, 0, b"", ("aborted", "Taken", "it is taken"))
OTHER_ABORT = ReplyRecord("r1", 3, 3, 7, 0, b"", ("aborted", "Taken", "it is gone"))
LATER = ReplyRecord("r1", 3, 3, 7, 2, b"\x05")


@pytest.mark.parametrize(
    ("answered", "replayed", "expected"),
    [
        (FIVE, FIVE, False),
        (FIVE, SIX, True),
        (FIVE, ABORT, True),
        (ABORT, FIVE, True),
        (ABORT, OTHER_ABORT, False),
        (FIVE, LATER, False),
    ],
    ids=["same", "result", "abort now", "result now", "words", "place"],
)
def test_what_contradicts_a_reply(answered: ReplyRecord, replayed: ReplyRecord, expected: bool) -> None:
    assert contradicts(answered, replayed) is expected


@pytest.mark.parametrize(
    ("answered", "replayed", "words"),
    [
        (FIVE, SIX, "gives 6 but 5 was answered"),
        (ABORT, FIVE, "gives 5 but 'Taken: it is taken' was answered"),
        (None, FIVE, "gives 5 but something else was answered"),
        (FIVE, LATER, "gives 5: it was so at (7, 1) in the order, and is now at (7, 2), which is harmless by itself"),
    ],
    ids=["result", "abort", "unknown", "place"],
)
def test_the_words(answered: ReplyRecord | None, replayed: ReplyRecord, words: str) -> None:
    assert (
        difference(REQUEST, answered, replayed) == f"the replay of request r1 (seat[(7, '12A')], function book) {words}"
    )


def test_a_request_that_cannot_be_read_is_named_by_its_id() -> None:
    assert difference(b"\xc1", FIVE, SIX) == "the replay of request r1 gives 6 but 5 was answered"


def test_a_large_result_does_not_fill_the_message() -> None:
    large = ReplyRecord("r1", 3, 3, 7, 1, b"\xdb" + (10**6).to_bytes(4, "big") + b"x" * 10**6)
    assert len(difference(REQUEST, FIVE, large)) < 2000


OTHER_TYPE = ReplyRecord("r1", 3, 3, 7, 0, b"", ("aborted", "Gone", "it is taken"))
ELSEWHERE = ReplyRecord("r1", 3, 3, 8, 0, b"", ("aborted", "Taken", "it is gone"))


@pytest.mark.parametrize(
    ("answered", "replayed", "expected"),
    [
        (ABORT, OTHER_ABORT, WORDED_DIFFERENTLY),
        (ABORT, OTHER_TYPE, CAUSES),
        (ABORT, ELSEWHERE, CAUSES),
        (ABORT, FIVE, CAUSES),
        (FIVE, ABORT, CAUSES),
        (None, ABORT, CAUSES),
    ],
    ids=["words", "type", "place", "result now", "abort now", "unknown"],
)
def test_other_words_alone_are_no_changed_code(answered: ReplyRecord, replayed: ReplyRecord, expected: str) -> None:
    assert causes(answered, replayed) == expected


def test_a_reply_is_compared_with_its_record_or_its_digest() -> None:
    record = encode_reply(FIVE)
    for given in (record, reply_digest(record)):
        assert is_given(given, FIVE)
        assert not is_given(given, LATER)


def test_each_function_is_told_of() -> None:
    told = Told()
    for function in (("seat", 1, "book"), ("seat", 1, "free"), None):
        assert [told.again(function) for _ in range(TOLD_MAX + 2)] == [*[""] * (TOLD_MAX - 1), FURTHER, None, None]
    assert told.again(("seat", 2, "book")) is None, "the entity does not count"
    several = [told.again(("seat", 1, f"f{number}")) for number in range(FUNCTIONS_TOLD_MAX)]
    assert several == [""] * (FUNCTIONS_TOLD_MAX - 3) + [None] * 3


def test_an_outside_call_that_is_not_made_now() -> None:
    assert "transaction 41 of slot 2 does not wait for the external call" in not_resumed(41, 2)

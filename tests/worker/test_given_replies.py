"""What a recovery keeps of the replies that stand in the log."""

from __future__ import annotations

from styx.messages import ReplyRecord, encode_reply
from styx.protocol.messages import NOTHING
from styx.worker.given_replies import GivenReplies, given_replies
from styx.worker.replay_difference import reply_digest

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

"""Replies of an epoch: in serial order, each at most once, and remembered as they were the first time."""

from __future__ import annotations

import pytest

from styx.messages import ReplyRecord, decode_reply, encode_reply
from styx.protocol.frames import Failure
from styx.state.slot_state import SlotState
from styx.worker.events import EmitReplies, ReplyDiffers
from styx.worker.given_replies import reply_digest
from styx.worker.replies import Replies
from styx.worker.reply_memory import ReplyMemory
from styx.worker.root import RootTransaction
from tests.worker.execution import scripted_root


class Epoch:
    """Replies of epoch 7 over two slots, with their memories."""

    def __init__(self, *answered: ReplyRecord) -> None:
        self.memories = {index: ReplyMemory(SlotState(), 10, 10**9) for index in (0, 1)}
        self.replies = Replies(self.memories, 2)
        self.replies.answered = {reply.sequence: encode_reply(reply) for reply in answered}
        self.replies.begin(7, replayed=True)

    def taken(self) -> dict[int, list[ReplyRecord]]:
        return {effect.slot: effect.replies for effect in self.replies.take() if isinstance(effect, EmitReplies)}


def committed(tid: int, key: str = "a0", result: bytes = b"\x05", idempotency: bytes | None = None) -> RootTransaction:
    root = scripted_root(tid, key, "get")
    root.result = result
    root.idempotency = idempotency
    return root


def test_a_reply_carries_the_result_and_the_place_in_the_serial_order() -> None:
    epoch = Epoch()
    epoch.replies.add([committed(3)], 1)
    assert epoch.taken() == {0: [ReplyRecord("r3", 3, 3, 7, 1, b"\x05")]}


def test_an_error_is_a_reply() -> None:
    epoch = Epoch()
    root = committed(3)
    root.failure = Failure(b"", b"", False, "aborted", "Short", "no money")
    epoch.replies.add([root], 0)
    assert epoch.taken() == {0: [ReplyRecord("r3", 3, 3, 7, 0, b"", ("aborted", "Short", "no money"))]}


def test_replies_go_to_their_slots_in_the_order_given() -> None:
    epoch = Epoch()
    for tid, key in ((1, "a0"), (4, "b1"), (3, "c0")):
        epoch.replies.add([committed(tid, key)], 1)
    assert {slot: [reply.tid for reply in replies] for slot, replies in epoch.taken().items()} == {0: [1, 3], 1: [4]}


def test_taking_empties_it() -> None:
    epoch = Epoch()
    epoch.replies.add([committed(3)], 1)
    with pytest.raises(AssertionError, match="before the last one's replies were taken"):
        epoch.replies.begin(8)
    assert epoch.taken()
    assert epoch.taken() == {}
    epoch.replies.begin(8)


def test_neither_a_result_nor_an_error_is_a_bug() -> None:
    root = scripted_root(3, "a0", "get")
    with pytest.raises(AssertionError, match="without a result or an error"):
        Epoch().replies.add([root], 1)


# Once ----------------------------------------------------------------------------------------------------------


def test_a_reply_that_the_log_holds_is_not_given_again() -> None:
    epoch = Epoch(ReplyRecord("r3", 3, 3, 7, 1, b"\x05"))
    epoch.replies.add([committed(3)], 1)
    epoch.replies.add([committed(5)], 1)
    assert [reply.tid for reply in epoch.taken()[0]] == [5]
    assert epoch.replies.answered == {}, "known replies are forgotten one by one"


@pytest.mark.parametrize(
    "answered",
    [
        ReplyRecord("r3", 3, 3, 7, 1, b"\x06"),
        ReplyRecord("r3", 3, 3, 7, 2, b"\x05"),
        ReplyRecord("r3", 3, 3, 8, 1, b"\x05"),
        ReplyRecord("r3", 3, 3, 7, 1, b"", ("aborted", "Short", "no money")),
    ],
    ids=["result", "phase", "epoch", "error"],
)
def test_a_reply_that_is_another_one_now_is_told_of_and_not_given(answered: ReplyRecord) -> None:
    epoch = Epoch(answered)
    root = committed(3)
    epoch.replies.add([root, committed(5)], 1)
    differing, given = epoch.replies.take()
    assert differing == ReplyDiffers(0, ReplyRecord("r3", 3, 3, 7, 1, b"\x05"), root.payload, answered)
    assert given == EmitReplies(0, [ReplyRecord("r5", 5, 5, 7, 1, b"\x05")])
    assert epoch.replies.take() == []


def test_a_suppressed_reply_is_remembered_all_the_same() -> None:
    epoch = Epoch(ReplyRecord("r3", 3, 3, 7, 1, b"\x05"))
    epoch.replies.add([committed(3, idempotency=b"key")], 1)
    known = epoch.memories[0].recall(b"key")
    assert known is not None
    assert decode_reply(known) == ReplyRecord("r3", 3, 3, 7, 1, b"\x05")


def test_what_stands_is_remembered_and_repeated_where_the_replay_gives_another_one() -> None:
    answered = ReplyRecord("r3", 3, 3, 7, 1, b"\x06")
    epoch = Epoch(answered)
    root = committed(3, idempotency=b"key")
    root.repeats = [("again", 9, 3)]
    epoch.replies.add([root], 1)
    known = epoch.memories[0].recall(b"key")
    assert known == encode_reply(answered)
    differing, given = epoch.replies.take()
    assert isinstance(differing, ReplyDiffers)
    assert given == EmitReplies(0, [ReplyRecord("again", 9, 3, 7, 1, b"\x06", reply_to=3)])


def test_of_a_reply_that_is_not_kept_a_difference_is_told_all_the_same() -> None:
    epoch = Epoch()
    epoch.replies.answered = {3: reply_digest(encode_reply(ReplyRecord("r3", 3, 3, 7, 1, b"\x06")))}
    root = committed(3, idempotency=b"key")
    epoch.replies.add([root], 1)
    now = ReplyRecord("r3", 3, 3, 7, 1, b"\x05")
    assert epoch.replies.take() == [ReplyDiffers(0, now, root.payload, None)]
    assert epoch.memories[0].recall(b"key") == encode_reply(now)


def test_behind_a_replay_only_its_own_unfinished_ones_are_known() -> None:
    own, anothers = ReplyRecord("r3", 3, 3, 7, 1, b"\x06"), ReplyRecord("r5", 5, 5, 7, 1, b"\x05")
    epoch = Epoch(own, anothers)
    del epoch.memories[1]
    epoch.replies._n_slots = 4  # TID 3 is slot 2's
    epoch.memories[2] = ReplyMemory(SlotState(), 10, 10**9)
    epoch.replies.begin(8, replayed=True)
    assert set(epoch.replies.answered) == {3, 5}
    epoch.replies.begin(9)
    assert set(epoch.replies.answered) == {3, 5}, "5 is slot 0's"
    del epoch.memories[0]
    epoch.replies.begin(10)
    assert set(epoch.replies.answered) == {3}


def test_waiting_repetitions_get_the_same_reply_under_their_own_names() -> None:
    epoch = Epoch(ReplyRecord("lost and found", 9, 3, 7, 2, b"\x05"))
    root = committed(3, idempotency=b"key")
    root.repeats = [("again", 7, 3), ("lost and found", 9, 0)]
    epoch.replies.add([root], 2)
    assert epoch.taken() == {
        0: [ReplyRecord("r3", 3, 3, 7, 2, b"\x05"), ReplyRecord("again", 7, 3, 7, 2, b"\x05", None, 3)]
    }, "one of the two stood in the log already"


def test_a_late_repetition_gets_the_remembered_reply() -> None:
    epoch = Epoch()
    root = committed(12, idempotency=b"key")
    root.remembered = ReplyRecord("first", 3, 3, 2, 1, b"\x09")
    epoch.replies.add([root], 0)
    assert epoch.taken() == {0: [ReplyRecord("r12", 12, 3, 2, 1, b"\x09")]}
    assert epoch.memories[0].recall(b"key") is None, "it is not remembered a second time"

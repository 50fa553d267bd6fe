"""One frame a peer and pass; acks of one transaction to one root are one ack."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from styx.protocol.frames import Ack, Call, CallSpec, Drop, ExternalDone, Failure, Frame, Result, WorkerMessage
from styx.worker.outbox import BYTES_HELD_MAX, FRAME_BYTES, MESSAGES_HELD_MAX, Outbox, weight


def failure(chain: bytes, message: str) -> Failure:
    return Failure(chain, chain, False, "aborted", "Error", message)


EARLY, LATE = failure(b"\0\0", "early"), failure(b"\0\1", "late")


def acked(*acks: Ack) -> Ack:
    """The one ack that these become."""
    outbox = Outbox()
    for ack in acks:
        outbox.acknowledge(2, replace(ack))
    [(peer, frame)] = outbox.take(1, 5, 0)
    assert (peer, len(frame.messages)) == (2, 1)
    [message] = frame.messages
    assert isinstance(message, Ack)
    return message


def test_a_frame_holds_a_peers_messages_in_sending_order_and_acks_last() -> None:
    outbox = Outbox()
    ack = Ack(8, 0, 1, 2, 1)
    outbox.acknowledge(1, ack)
    for peer, tid in ((1, 3), (2, 4), (1, 5)):
        outbox.send(peer, Drop(tid))
    assert outbox.take(7, 9, 0) == [(1, Frame(7, 9, 0, [Drop(3), Drop(5), ack])), (2, Frame(7, 9, 0, [Drop(4)]))]


def test_taking_empties_it() -> None:
    outbox = Outbox()
    outbox.send(1, Drop(3))
    outbox.acknowledge(1, Ack(8, 0, 1, 2, 1))
    assert outbox.take(1, 0, 0)
    assert outbox.take(1, 0, 0) == []
    outbox.send(1, Drop(3))
    outbox.acknowledge(1, Ack(8, 0, 1, 2, 1))
    outbox.clear()
    assert outbox.take(1, 0, 0) == []


def test_shares_and_counts_of_one_transaction_are_summed() -> None:
    summed = acked(Ack(8, 0, 1, 2, 3), Ack(8, 0, 1, 1, 0), Ack(8, 0, 1, 4, 2))
    assert (summed.share, summed.scale, summed.count) == (13, 4, 5)


def test_flags_are_not_lost_in_a_sum() -> None:
    plain = Ack(8, 0, 1, 2, 1)
    for flag in ("collided", "overflow", "external"):
        flagged = Ack(8, 0, 0, 0, 0)
        setattr(flagged, flag, True)
        assert getattr(acked(plain, flagged), flag)
        assert getattr(acked(flagged, plain), flag)
        assert not getattr(acked(plain, plain), flag)


def test_the_first_failure_in_serial_order_is_kept() -> None:
    plain, early, late = Ack(8, 0, 1, 2, 1), Ack(8, 0, 1, 2, 1, failure=EARLY), Ack(8, 0, 1, 2, 1, failure=LATE)
    assert acked(plain, late).failure == LATE
    assert acked(late, plain).failure == LATE
    assert acked(late, early).failure == EARLY
    assert acked(early, late).failure == EARLY


def test_transactions_and_roots_are_kept_apart() -> None:
    outbox = Outbox()
    outbox.acknowledge(1, Ack(8, 0, 1, 1, 1))
    outbox.acknowledge(1, Ack(9, 0, 1, 1, 1))
    outbox.acknowledge(2, Ack(8, 1, 1, 1, 1))
    assert {(peer, len(frame.messages)) for peer, frame in outbox.take(1, 0, 0)} == {(1, 2), (2, 1)}


def test_chains_in_sequence_cannot_be_summed() -> None:
    calls = [(b"\0\0", CallSpec(False, 0, "operator", "function", "key", b""))]
    outbox = Outbox()
    outbox.acknowledge(1, Ack(8, 0, 1, 0, 1, calls=calls))
    with pytest.raises(AssertionError, match="one chain at a time"):
        outbox.acknowledge(1, Ack(8, 0, 1, 0, 1))


def test_it_is_full_before_it_holds_back_too_much() -> None:
    outbox = Outbox()
    for number in range(MESSAGES_HELD_MAX - 1):
        assert not outbox.full
        outbox.send(1, Drop(number))
    outbox.acknowledge(2, Ack(5, 0, 1, 0, 1))
    assert outbox.full
    assert [len(frame.messages) for _, frame in outbox.take(1, 0, 0)] == [MESSAGES_HELD_MAX - 1, 1]
    assert not outbox.full


def call(params: bytes) -> Call:
    return Call(1, 0, 0, 1, "o", "f", "k", params, b"", b"", 0, 1, 0)


SPEC = CallSpec(False, 1, "o", "f", "k", bytes(70))


@pytest.mark.parametrize(
    ("message", "size"),
    [
        (call(bytes(50)), 50),
        (Result(1, 0, b"", bytes(60), 1, [(b"", SPEC), (b"", SPEC)]), 200),
        (Result(1, 0, b"", None, 1, []), 0),
        (Ack(1, 0, 1, 2, 1, calls=[(b"", SPEC)]), 70),
        (Drop(1), 0),
        (ExternalDone(1, 0, b"", bytes(80)), 80),
    ],
)
def test_what_messages_weigh(message: WorkerMessage, size: int) -> None:
    assert weight(message) == size


def test_large_messages_are_sent_soon() -> None:
    outbox = Outbox()
    outbox.send(1, call(bytes(BYTES_HELD_MAX - 1)))
    assert not outbox.full
    outbox.send(2, call(b"x"))
    assert outbox.full
    outbox.take(0, 0, 0)
    assert not outbox.full


def test_large_messages_are_spread_over_frames_in_order() -> None:
    outbox = Outbox()
    size = FRAME_BYTES // 4 + 1
    sent = [call(bytes([number]) * size) for number in range(10)]
    for message in sent:
        outbox.send(1, message)
        outbox.send(2, Drop(message.params[0]))
    outbox.acknowledge(1, Ack(8, 0, 1, 2, 1))
    frames = outbox.take(0, 0, 0)
    to_first = [frame.messages for peer, frame in frames if peer == 1]
    assert [len(messages) for messages in to_first] == [4, 4, 3]
    assert [message for messages in to_first for message in messages][:10] == sent
    assert [len(frame.messages) for peer, frame in frames if peer == 2] == [10]
    assert outbox.take(0, 0, 0) == []

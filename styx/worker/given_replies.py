"""Given replies: which requests of the epochs to be replayed were answered, and how far these epochs were decided.

A reply leaves only when its step of the epoch is decided on all workers, and when every verdict of that step is
recorded. So a single reply of any worker proves that time decides nothing there in a replay. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from styx.protocol.messages import NOTHING, Reached
from styx.worker.replay_difference import reply_digest

LOCK_PHASE: Final = 2

KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Replies behind a snapshot that a recovery keeps as they are; of further ones it keeps digests."""


class GivenReplies(NamedTuple):
    """Replies by sequence TID, records of the log or their digests, and how far they reach."""

    replies: dict[int, bytes | int]
    reached: Reached


class _Place(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """How a reply record begins."""

    request_id: str
    sequence: int
    tid: int
    epoch: int
    phase: int


_decode = msgspec.msgpack.Decoder(_Place).decode


def given_replies(
    records: Iterable[bytes], own: Callable[[int], bool] = lambda sequence: True, bytes_max: int = KEPT_BYTES_MAX
) -> GivenReplies:
    """Of records of the replies stream, of which those that are `own` by their TIDs are kept as they are. Raises
    `msgspec.DecodeError` for garbage.

    A repetition that was answered from memory has the place of the first answer, which is not later than its own.
    """
    replies: dict[int, bytes | int] = {}
    reached = NOTHING
    for record in records:
        place = _decode(record)
        size = len(record)
        if size <= bytes_max and own(place.sequence):
            bytes_max -= size
            replies[place.sequence] = record
        else:
            replies[place.sequence] = reply_digest(record)
        reached = max(reached, (place.epoch, place.phase))
    return GivenReplies(replies, reached)


def decided(epoch: int, locking: bool, reached: Reached) -> bool:
    """Whether replies that reach so far say that the epoch's lock phase, or its execution step, was decided."""
    return (epoch, LOCK_PHASE if locking else 0) <= reached

"""Given replies: which requests of the epochs to be replayed were answered, how far these epochs were decided, and
where a replay would give another reply.

A reply leaves only when its step of the epoch is decided on all workers, and when every verdict of that step is
recorded. So a single reply of any worker proves that time decides nothing there in a replay. If a replay's reply
differs from the given one, either the code is not the code that ran, or a function is not deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from styx.errors import EngineFailed
from styx.messages import ReplyRecord, Request, decode_request, encode_reply
from styx.protocol.messages import NOTHING, Reached
from styx.values.codec import decode_plain, shown

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


TOLD_MAX = 10
"""Differences of one function that are described in one recovery; further ones are only counted."""
FUNCTIONS_TOLD_MAX = 1_000
"""Functions whose differences are described in one recovery; those of further functions are only counted."""
FURTHER = "; further ones of this function are counted only"
"""Follows the last difference of a function that is told of."""
CAUSES = (
    "the function is not deterministic (does it use the clock, random, the order of a set, hash(), id() or a global "
    "variable?), or its code, the Limits, Python or a package that it uses have changed since the crash"
)
WORDED_DIFFERENTLY = (
    "it is the same error in other words, which is harmless: another Python or another form of the engine (plain, "
    "compiled) words some errors differently, or the function puts something into its message that changes"
)


class ReplayDiffers(EngineFailed):
    """A replay would contradict a reply that was given. The message names the request and both outcomes."""


def reply_digest(record: bytes) -> int:
    """Of a reply as it stands in the log."""
    return crc32(record)


def is_given(given: bytes | int, reply: ReplyRecord) -> bool:
    """Whether what was kept of the reply in the log, its record or its digest, is this reply's."""
    record = encode_reply(reply)
    return given == (reply_digest(record) if isinstance(given, int) else record)


def contradicts(answered: ReplyRecord, replayed: ReplyRecord) -> bool:
    """Whether somebody was told something else than what is so after the replay.

    Two errors with different words are none: neither of the transactions has done anything. Neither is another place in
    the order, with the same outcome.
    """
    if answered.error is not None and replayed.error is not None:
        return False
    return (answered.result, answered.error) != (replayed.result, replayed.error)


def causes(answered: ReplyRecord | None, replayed: ReplyRecord) -> str:
    """What can have made the difference; of the same error at the same place in the order, it is the words alone."""
    if answered is None or answered.error is None or replayed.error is None:
        return CAUSES
    before, now = answered.error[:2], replayed.error[:2]
    place, place_now = (answered.epoch, answered.phase), (replayed.epoch, replayed.phase)
    return WORDED_DIFFERENTLY if (before, place) == (now, place_now) else CAUSES


class Told:
    """Of which functions' differences has been told in words, in one recovery, and how often."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str] | None, int] = {}

    def again(self, function: tuple[str, Any, str] | None) -> str | None:
        """Counts one more; what its words end with, or None if it is not to be told of."""
        about = None if function is None else (function[0], function[2])
        times = self._times.get(about, 0) + 1
        if times > TOLD_MAX or (times == 1 and len(self._times) >= FUNCTIONS_TOLD_MAX):
            return None
        self._times[about] = times
        return FURTHER if times == TOLD_MAX else ""


def function_of(request: bytes) -> tuple[str, Any, str] | None:
    """(operator, key, function) of a request as it stands in the log, if it can be read."""
    try:
        decoded: Request = decode_request(request)
    except (msgspec.DecodeError, ValueError):
        return None
    key = tuple(decoded.key) if isinstance(decoded.key, list) else decoded.key
    return decoded.operator, key, decoded.function


def not_resumed(tid: int, slot: int) -> str:
    """The words for a transaction that waited for an external call when it ran first, and does not now."""
    return f"the replay of transaction {tid} of slot {slot} does not wait for the external call that it went on behind"


def difference(request: bytes, answered: ReplyRecord | None, replayed: ReplyRecord) -> str:
    """What was answered and what the replay gives; `request` is as it stands in the log."""
    now, place = _outcome(replayed), (replayed.epoch, replayed.phase)
    if answered is None:
        before = "something else"
    elif _outcome(answered) == now:
        before = f"it was so at {(answered.epoch, answered.phase)} in the order, and is now at {place},"
        return f"the replay of request {_named(request, replayed)} gives {now}: {before} which is harmless by itself"
    else:
        before = _outcome(answered)
    return f"the replay of request {_named(request, replayed)} gives {now} but {before} was answered"


def _named(payload: bytes, reply: ReplyRecord) -> str:
    where = function_of(payload)
    if where is None:
        return reply.request_id
    operator, key, function = where
    return f"{reply.request_id} ({operator}[{shown(key)}], function {function})"


def _outcome(reply: ReplyRecord) -> str:
    if reply.error is not None:
        _, kind, message = reply.error
        return shown(f"{kind}: {message}" if message else kind)
    try:
        return shown(decode_plain(reply.result))
    except Exception:  # noqa: BLE001 - words only
        return shown(reply.result)

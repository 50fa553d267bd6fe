"""Given replies: a recovery's record of the replies already in the log, and of the ways in which a replay's replies
differ from them.

The record says which requests were answered, and how far the epochs to be replayed were decided. A replay's reply is
compared with it: whether it is the given reply, whether it contradicts that reply, the error's words with the possible
causes, and how many differences of one function are described.

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
"""The bytes of replies after a snapshot that a recovery keeps as they are. It keeps digests of further replies."""


class GivenReplies(NamedTuple):
    """Replies by sequence TID, as the log's records or as digests, and how far they reach (epoch, phase)."""

    replies: dict[int, bytes | int]
    reached: Reached


class _Place(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The first fields of a reply record."""

    request_id: str
    sequence: int
    tid: int
    epoch: int
    phase: int


_decode = msgspec.msgpack.Decoder(_Place).decode


def given_replies(
    records: Iterable[bytes], own: Callable[[int], bool] = lambda sequence: True, bytes_max: int = KEPT_BYTES_MAX
) -> GivenReplies:
    """Reads records of the replies stream. Records whose TIDs are `own` are kept as they are, up to `bytes_max`;
    digests of all others. Raises `msgspec.DecodeError` for garbage.

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
    """Whether replies that reach as far as `reached` prove that the epoch's lock phase (`locking`), or its execution
    step, was decided.
    """
    return (epoch, LOCK_PHASE if locking else 0) <= reached


TOLD_MAX = 10
"""Differences of one function that are described in one recovery; further ones are only counted."""
FUNCTIONS_TOLD_MAX = 1_000
"""Functions whose differences are described in one recovery; those of further functions are only counted."""
FURTHER = "; further ones of this function are counted only"
"""Follows the last difference of a function that is described."""
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
    """The digest of a reply record of the log."""
    return crc32(record)


def is_given(given: bytes | int, reply: ReplyRecord) -> bool:
    """Whether `reply` equals the reply in the log, of which the record or the digest was kept."""
    record = encode_reply(reply)
    return given == (reply_digest(record) if isinstance(given, int) else record)


def contradicts(answered: ReplyRecord, replayed: ReplyRecord) -> bool:
    """Whether the reply that a client got is wrong after the replay.

    Two errors with different words are no contradiction, because neither transaction had an effect. The same outcome at
    another place in the serial order is none either.
    """
    if answered.error is not None and replayed.error is not None:
        return False
    return (answered.result, answered.error) != (replayed.result, replayed.error)


def causes(answered: ReplyRecord | None, replayed: ReplyRecord) -> str:
    """The possible causes of a difference. If both are the same error at the same place, only the words differ."""
    if answered is None or answered.error is None or replayed.error is None:
        return CAUSES
    before, now = answered.error[:2], replayed.error[:2]
    place, place_now = (answered.epoch, answered.phase), (replayed.epoch, replayed.phase)
    return WORDED_DIFFERENTLY if (before, place) == (now, place_now) else CAUSES


class Told:
    """How many differences of each function one recovery has described."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, str] | None, int] = {}

    def again(self, function: tuple[str, Any, str] | None) -> str | None:
        """Counts one more difference. Returns the end of its description, or None if it is not to be described."""
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
    """Describes a transaction that waited for an external call in its first run, but not in the replay."""
    return f"the replay of transaction {tid} of slot {slot} does not wait for the external call that it went on behind"


def difference(request: bytes, answered: ReplyRecord | None, replayed: ReplyRecord) -> str:
    """Describes the given reply and the replay's. `request` is as it stands in the log."""
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

"""A replay that gives another reply than the one that was given: what it means, and the words for it.

Either the code is not the one that ran, or a function is not deterministic. Pure; decides nothing about what follows.
"""

from __future__ import annotations

from zlib import crc32

import msgspec

from styx.codec import decode_plain, shown
from styx.errors import EngineFailed
from styx.messages import ReplyRecord, Request, decode_request, encode_reply

TOLD_MAX = 10
"""So many differences of one recovery are told of in words; further ones are counted only."""
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


def digest_of(reply: ReplyRecord) -> int:
    """Of a reply as it would stand in the log."""
    return reply_digest(encode_reply(reply))


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
    try:
        request: Request = decode_request(payload)
    except (msgspec.DecodeError, ValueError):
        return reply.request_id
    key = tuple(request.key) if isinstance(request.key, list) else request.key
    return f"{reply.request_id} ({request.operator}[{shown(key)}], function {request.function})"


def _outcome(reply: ReplyRecord) -> str:
    if reply.error is not None:
        _, kind, message = reply.error
        return shown(f"{kind}: {message}" if message else kind)
    try:
        return shown(decode_plain(reply.result))
    except Exception:  # noqa: BLE001 - words only
        return shown(reply.result)

"""Reads outside the log by HTTP: the headers that ask for one, and its answer.

`Styx-Freshness: latest`, `session` or `strict`, or `Styx-At: EPOCH`, makes of a call of a read-only function, or of the
read of an entity or its rows, a read outside the log. `Styx-Epoch` is the token of a session: every answer has the
epoch that it is of, and a request says the largest one that its session has seen. `Styx-Max-Staleness` is in seconds.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from styx.errors import BadArguments, RequestRejected
from styx.gateway import status
from styx.gateway.engine import Engine
from styx.gateway.status import Answer
from styx.messages import ReplyRecord
from styx.model.freshness import SESSION, Freshness, freshness_of
from styx.model.request import Placed
from styx.values.codec import shown

FRESHNESS: Final = b"styx-freshness"
AT: Final = b"styx-at"
TOKEN: Final = status.EPOCH
MAX_STALENESS: Final = b"styx-max-staleness"
TOO_OLD: Final = "snapshot_too_old"
"""The code of a read whose epoch is not kept any more."""
HEADERS: Final = (FRESHNESS, AT, TOKEN, MAX_STALENESS)
_EPOCH = re.compile(rb"[0-9]{1,15}+")
_SECONDS = re.compile(rb"[0-9]{1,9}+(\.[0-9]{1,9}+)?+")


def freshness(headers: Mapping[bytes, bytes]) -> Freshness | None:
    """What a request asks for; None if it is to go through the log. A token alone asks for `session`.

    Raises `RequestRejected` (`bad_request`).
    """
    level, at, token, seconds = [headers.get(name) for name in HEADERS]
    if level is None and at is None and token is None and seconds is None:
        return None
    seen = -1 if token is None else epoch_in(token, "Styx-Epoch")
    allowed = None
    if seconds is not None:
        if _SECONDS.fullmatch(seconds) is None:
            raise _bad("Styx-Max-Staleness must be seconds, such as 0.5", seconds)
        allowed = float(seconds)
    wanted = None if level is None else level.decode("latin-1")
    if wanted is None and at is None and token is not None:
        wanted = SESSION
    try:
        return freshness_of(wanted, seen, None if at is None else epoch_in(at, "Styx-At"), allowed)
    except BadArguments as error:
        raise RequestRejected("bad_request", f"{error}; the headers are Styx-Freshness and Styx-At") from None


async def answer_read(engine: Engine, request: Placed, wanted: Freshness, seconds: float) -> Answer:
    """The answer to a read outside the log; raises `RequestRejected`."""
    try:
        async with asyncio.timeout(seconds):
            return answer_of(await engine.read(request, wanted))
    except TimeoutError:
        return late(seconds, wanted)


def late(seconds: float, wanted: Freshness) -> Answer:
    """The answer to a read that has not ended in time."""
    message = f"the read has not ended within {seconds:g} s; nothing was changed{_waited_for(wanted)}"
    return status.failure("timeout", TimeoutError.__name__, message)


def _waited_for(wanted: Freshness) -> str:
    """What a person may not know of an epoch that does not come: that it may be none of this deployment's."""
    if wanted.level == SESSION and wanted.token >= 0:
        return (
            f". It waits for the end of epoch {wanted.token}, the session's token: if that is of another deployment, "
            "or of this one before its data were deleted, begin a new session without a token"
        )
    return f". It waits for the end of epoch {wanted.at}" if wanted.at is not None else ""


def answer_of(record: ReplyRecord) -> Answer:
    """The answer that carries the reply of a read outside the log."""
    error = record.error
    if error is not None and error[0] != "aborted":
        return status.failure(*error)  # nothing was read
    return status.answer_of_read(record)


def epoch_in(value: bytes, name: str) -> int:
    """The epoch that a header of this name has. Raises `RequestRejected` (`bad_request`)."""
    if _EPOCH.fullmatch(value) is None:
        raise _bad(f"{name} must be an epoch, such as 17", value)
    return int(value)


def _bad(what: str, value: bytes) -> RequestRejected:
    return RequestRejected("bad_request", f"{what}, got {shown(value.decode('latin-1'))}")

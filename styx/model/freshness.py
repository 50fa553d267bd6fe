"""What a read outside the log asks of the state that it sees: how new it must be, or which one it is."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from styx.errors import BadArguments
from styx.values.codec import shown

LATEST: Final = "latest"
"""The newest epoch that has closed where the read runs."""
SESSION: Final = "session"
"""At least the epoch of the session's token."""
STRICT: Final = "strict"
"""Everything that was answered before the read was asked for."""
AT: Final = "at"
"""Exactly one epoch."""
LEVELS: Final = (LATEST, SESSION, STRICT)
EPOCH_MAX: Final = 2**53
"""Epochs of a token, or to read at, stay below it: a browser's numbers are exact up to there."""


class Freshness(NamedTuple):
    """`level` is one of `LEVELS`, or `AT` for a read at the end of the epoch `at`. `token` is the session's: the
    largest epoch of its replies and reads, -1 for none. A state that has not been the newest one for more than
    `max_staleness_s` is refused.
    """

    level: str = LATEST
    token: int = -1
    at: int | None = None
    max_staleness_s: float | None = None


def freshness_of(level: Any, token: int, at: Any, max_staleness_s: Any) -> Freshness:
    """What a client or a request asks for; `level` and the others are None where it says nothing.

    Raises `BadArguments`.
    """
    if level is not None and level not in LEVELS:
        raise BadArguments(f"freshness is one of {', '.join(map(repr, LEVELS))}, got {shown(level)}")
    if at is not None:
        if level is not None or max_staleness_s is not None:
            raise BadArguments("a read at an epoch has no freshness: give `at` alone")
        if check_epoch(at) < 0:
            raise BadArguments("at=-1 is no epoch that a read can see: the first one is 0")
        return Freshness(AT, -1, at)
    if max_staleness_s is not None:
        good = type(max_staleness_s) in (int, float) and math.isfinite(max_staleness_s) and max_staleness_s >= 0
        if not good:
            raise BadArguments(f"max_staleness_s is a number of seconds from 0 on, got {shown(max_staleness_s)}")
        max_staleness_s = float(max_staleness_s)
    return Freshness(level or LATEST, token, None, max_staleness_s)


def check_epoch(epoch: Any) -> int:
    """`epoch` if it is one; raises `BadArguments`."""
    if type(epoch) is not int or not -1 <= epoch < EPOCH_MAX:
        raise BadArguments(f"an epoch is an int, as a reply has it, got {shown(epoch)}")
    return epoch

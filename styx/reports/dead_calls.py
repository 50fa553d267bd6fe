"""Calls that were given for later and then given up, after their last attempt: counted by function, and told in the
log. The first of each function is told at once, further ones once in a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Final

from styx.model.lifetime import EXPIRE_FUNCTION
from styx.values.codec import shown
from styx.worker.events import CallGivenUp

AGAIN_SECONDS: Final = 60.0
"""The interval at which the log names a function again."""

_log = logging.getLogger("styx.functions")


class DeadCalls:
    """`by_function` counts the calls since the process started, by the called function's full name."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.by_function: dict[str, int] = {}
        self._clock = clock
        self._told: dict[str, tuple[float, int]] = {}

    def add(self, call: CallGivenUp) -> None:
        """Takes a call that was given up."""
        name = f"{call.operator}.{call.function}"
        count = self.by_function[name] = self.by_function.get(name, 0) + 1
        now_s, before = self._clock(), self._told.get(name)
        if before is not None and now_s - before[0] < AGAIN_SECONDS:
            return
        self._told[name] = (now_s, count)
        more = count - 1 - (0 if before is None else before[1])
        others = f" ({more} others of it since this was last said)" if more else ""
        if call.function == EXPIRE_FUNCTION:
            _log.warning(
                "what %s[%s] has kept for its ttl= could not be deleted: %s: %s%s. It stays, and this is tried again",
                call.giver,
                shown(call.giver_key),
                *call.error,
                others,
            )
            return
        _log.warning(
            "a call of %s on %s, given for later by %s[%s], was given up after %d attempts: %s: %s%s. It is kept among "
            "the dead calls of %s",
            name,
            shown(call.key),
            call.giver,
            shown(call.giver_key),
            call.attempts,
            *call.error,
            others,
            call.giver,
        )

"""Calls that were given for later and then given up, after their last attempt: counted by function, and told in the
log; and the older ones that had to go because too many are kept. The first of each function, and of each operator whose
older ones go, is told at once, further ones once in a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final

from styx.model.dead_calls import DEAD_CALLS_MAX
from styx.model.lifetime import EXPIRE_FUNCTION
from styx.values.codec import shown
from styx.worker.events import CallGivenUp

AGAIN_SECONDS: Final = 60.0
"""The interval at which the log names a function again."""

_log = logging.getLogger("styx.functions")


class DeadCalls:
    """`by_function` counts the calls since the process started, by the called function's full name. `dropped` counts
    those that had to go, by the operator that gave them.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.by_function: dict[str, int] = {}
        self.dropped: dict[str, int] = {}
        self._clock = clock
        self._told: dict[str, tuple[float, int]] = {}
        self._dropped_told: dict[str, tuple[float, int]] = {}

    def add(self, call: CallGivenUp) -> None:
        """Takes a call that was given up."""
        if call.dropped:
            self._drop(call.giver, call.dropped)
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
            "the dead calls of %s (styx dead list)",
            name,
            shown(call.key),
            call.giver,
            shown(call.giver_key),
            call.attempts,
            *call.error,
            others,
            call.giver,
        )

    def dropped_of(self, operators: Iterable[str]) -> dict[str, int]:
        """How many had to go, of these operators and of those of which some had: so who reads it sees a 0 first."""
        return dict.fromkeys(operators, 0) | self.dropped

    def _drop(self, operator: str, number: int) -> None:
        count = self.dropped[operator] = self.dropped.get(operator, 0) + number
        now_s, before = self._clock(), self._dropped_told.get(operator)
        if before is not None and now_s - before[0] < AGAIN_SECONDS:
            return
        self._dropped_told[operator] = (now_s, count)
        _log.error(
            "operator %s has too many dead calls: a partition keeps %d, and the oldest are lost, %d since the start. "
            "Look at them, and try them again or drop them: styx dead list %s",
            operator,
            DEAD_CALLS_MAX,
            count,
            operator,
        )

"""The breakdown of a worker's time into functions, state, network, protocol and waiting, measured in one epoch of many.

The shares are those of the paper's Table 3.
"""

from __future__ import annotations

from collections.abc import Awaitable
from time import perf_counter
from typing import Any, Final

from styx.worker.invocation import Invocation

EPOCHS_PER_SAMPLE: Final = 64
"""One epoch in this number is timed in detail."""
PARTS: Final = ("function", "state", "network", "protocol", "idle")


class TimeBreakdown:
    """Seconds of sampled epochs by part, and how many transactions were rooted in them.

    `running_s` is the time spent in functions; `state_s` is the part of it in `get`, `put` and `delete`.
    """

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.transactions = 0
        self._ended: tuple[float, float, float, float, int] | None = None
        self.begin()

    def begin(self) -> None:
        """A sampled epoch begins."""
        self.running_s = self.state_s = self.network_s = 0.0
        self._idle_s = 0.0
        self._waiting_since_s: float | None = None
        self._for_peers = False

    def wait(self, now_s: float, for_peers: bool) -> None:
        """A wait begins. `for_peers`: transactions with their root here run on other workers meanwhile."""
        self._waiting_since_s, self._for_peers = now_s, for_peers

    def go_on(self, now_s: float) -> None:
        """Ends the wait, if there is one."""
        if self._waiting_since_s is not None:
            waited_s = now_s - self._waiting_since_s
            self._waiting_since_s = None
            if self._for_peers:
                self.network_s += waited_s
            else:
                self._idle_s += waited_s

    def moved(self, seconds: float) -> None:
        """Takes the time for encoding and sending, or decoding, frames. If it lies within a wait, it is taken
        from it.
        """
        self.network_s += seconds
        if self._waiting_since_s is not None:
            self._waiting_since_s += seconds

    def end(self, transactions: int) -> None:
        """The sampled epoch closes. The next epoch may begin before `count`."""
        function_s = max(0.0, self.running_s - self.state_s)
        self._ended = (function_s, self.state_s, self.network_s, self._idle_s, transactions)

    def count(self, whole_s: float) -> None:
        """Takes the duration of the closed epoch. In a sampled epoch, the time of no other part counts as the
        protocol's.
        """
        ended, self._ended = self._ended, None
        if ended is None:
            return
        function_s, state_s, network_s, idle_s, transactions = ended
        seconds = self.seconds
        seconds["function"] += function_s
        seconds["state"] += state_s
        seconds["network"] += network_s
        seconds["idle"] += idle_s
        seconds["protocol"] += max(0.0, whole_s - function_s - state_s - network_s - idle_s)
        self.transactions += transactions

    def abandon(self) -> None:
        """Forgets the times that have not been counted, because the generation has ended."""
        self._ended = None


def timed_invocation(breakdown: TimeBreakdown) -> type[Invocation]:
    """A subclass of `Invocation` that adds the time spent in `get`, `put` and `delete` to `breakdown.state_s`."""

    class TimedInvocation(Invocation):
        async def get(self, default: Any = None) -> Any:
            started_s = perf_counter()
            try:
                return await Invocation.get(self, default)
            finally:
                breakdown.state_s += perf_counter() - started_s

        def put(self, value: Any) -> Awaitable[None]:
            started_s = perf_counter()
            try:
                return Invocation.put(self, value)
            finally:
                breakdown.state_s += perf_counter() - started_s

        def delete(self) -> Awaitable[None]:
            started_s = perf_counter()
            try:
                return Invocation.delete(self)
            finally:
                breakdown.state_s += perf_counter() - started_s

    TimedInvocation.__name__ = Invocation.__name__
    return TimedInvocation

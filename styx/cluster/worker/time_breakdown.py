"""The breakdown of a worker's time: functions, state, the network, the protocol, waiting; measured in one epoch of
many.

The shares are those of the paper's Table 3.
"""

from __future__ import annotations

from collections.abc import Awaitable
from time import perf_counter
from typing import Any, Final

from styx.worker.invocation import Invocation

EPOCHS_PER_SAMPLE: Final = 64
"""One epoch in so many is timed in detail."""
PARTS: Final = ("function", "state", "network", "protocol", "idle")


class TimeBreakdown:
    """Seconds of sampled epochs by part, and how many transactions were rooted in them.

    `running_s` is time spent driving functions, `state_s` the part of it inside of `get`, `put` and `delete`.
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
        """There is nothing to do; `for_peers`: own transactions run on other workers."""
        self._waiting_since_s, self._for_peers = now_s, for_peers

    def go_on(self, now_s: float) -> None:
        """The wait, if there was one, is over."""
        if self._waiting_since_s is not None:
            waited_s = now_s - self._waiting_since_s
            self._waiting_since_s = None
            if self._for_peers:
                self.network_s += waited_s
            else:
                self._idle_s += waited_s

    def moved(self, seconds: float) -> None:
        """Frames were encoded and sent, or decoded: maybe in the midst of a wait, of which it is no part."""
        self.network_s += seconds
        if self._waiting_since_s is not None:
            self._waiting_since_s += seconds

    def end(self, transactions: int) -> None:
        """The sampled epoch closes; the next one may begin before it counts."""
        function_s = max(0.0, self.running_s - self.state_s)
        self._ended = (function_s, self.state_s, self.network_s, self._idle_s, transactions)

    def count(self, whole_s: float) -> None:
        """The epoch that has closed took so long. Whatever was not told of it, if it was sampled, is the protocol's."""
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
        """The generation is over: what has not been counted never will be."""
        self._ended = None


def timed_invocation(breakdown: TimeBreakdown) -> type[Invocation]:
    """A kind of invocation that adds the time spent in `get`, `put` and `delete` to `breakdown.state_s`."""

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

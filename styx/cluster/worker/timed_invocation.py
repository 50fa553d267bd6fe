"""Contexts whose use of state is timed, for the few epochs that are sampled. Behaves like any other invocation."""

from __future__ import annotations

from collections.abc import Awaitable
from time import perf_counter
from typing import Any

from styx.cluster.worker.time_breakdown import TimeBreakdown
from styx.worker.invocation import Invocation


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

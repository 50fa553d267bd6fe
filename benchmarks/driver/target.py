"""A target: what one client process puts under load, and what can become of a request. Never measures or schedules.

A deployment of Styx is one target, PostgreSQL another; the open loop, the histograms and the search know no more of
them than this.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from benchmarks.driver.workload import Generator, Planned
from styx.client.kafka.waiters import Receiver
from styx.messages import Reply


class Outcome(StrEnum):
    """What became of a request, as the results count it."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    """The function raised: an answer like another one, by the will of the workload."""
    REJECTED = "rejected"
    """It was not run: overload, or a fault in the workload."""
    UNKNOWN = "unknown"
    """The connection broke before the reply came."""
    MISSED = "missed"
    """No reply in time."""


ANSWERED = (Outcome.COMMITTED, Outcome.ABORTED)
"""The outcomes whose latency counts."""


def outcome_of(reply: Reply) -> Outcome:
    """Of a request that was answered."""
    error = reply.error
    if error is None:
        return Outcome.COMMITTED
    return Outcome.ABORTED if error.code == "aborted" else Outcome.REJECTED


class Target(Protocol):
    """Used on one event loop, in one process; made in the process that uses it."""

    async def connect(self) -> None:
        """Before the first request."""

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        """Sends without waiting; cheap, for it runs in the send loop.

        `receiver` gets the reply, committed or not, or `TimeoutError` (no reply in time) or `ConnectionError`.
        """

    async def close(self) -> None:
        """After the last request."""


class TargetFactory(Protocol):
    """Makes a client process's target, in that process: picklable, so a module's function or a frozen dataclass."""

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        """`timeout_s`: how long a request waits for its reply; `in_flight_max`: requests under way at once."""


class GeneratorFactory(Protocol):
    """Makes a client process's generator, in that process: picklable, as a `TargetFactory` is."""

    def __call__(self, client: int, clients: int, seed: int) -> Generator:
        """As `Workload.generator`."""

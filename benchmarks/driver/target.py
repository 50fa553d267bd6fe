"""A target: the system under load as one client process sees it, and the possible outcomes of a request.

A deployment of Styx is a target, and PostgreSQL is another. The open loop, the histograms and the search use only this
interface.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from benchmarks.driver.workload import Generator, Planned
from styx.host.waiters import Receiver
from styx.messages import Reply


class Outcome(StrEnum):
    """The outcome of a request, as in results."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    """The function raised on purpose: an ordinary answer."""
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
    """A target is used on one event loop of one process, and made in that process."""

    async def connect(self) -> None:
        """Called before the first request."""

    def submit(self, planned: Planned, receiver: Receiver) -> None:
        """Sends a request without waiting. It must be cheap, because it runs in the send loop. `receiver` gets the
        reply, committed or not, or `TimeoutError` (no reply in time) or `ConnectionError`.
        """

    async def close(self) -> None:
        """Called after the last request."""


class TargetFactory(Protocol):
    """Makes the target of a client process, in that process. It must be picklable: a module's function or a frozen
    dataclass.
    """

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        """`timeout_s`: how long a request waits for its reply; `in_flight_max`: requests under way at once."""


class GeneratorFactory(Protocol):
    """Makes the generator of a client process, in that process. It must be picklable, as a `TargetFactory`."""

    def __call__(self, client: int, clients: int, seed: int) -> Generator:
        """See `Workload.generator`."""

"""Whether a deployment stood twice the load that it can serve, by the results of the drive. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from benchmarks.driver.latency import Cells, decode, merge, percentile_us
from benchmarks.driver.result import Result
from benchmarks.driver.target import ANSWERED, Outcome

ANSWERED_SHARE_MIN: Final = 0.95
"""Of the highest rate."""
REFUSED_US_MAX: Final = 100_000
"""The median time until a request is refused."""
WAIT_US_MAX: Final = 2_000_000
"""p99 of what is answered."""
NORMAL_SECONDS_MAX: Final = 2.0
"""After the load ends: until the last reply that it is owed."""
NORMAL_US_MAX: Final = 1_000_000
"""p99 of the load that comes after."""
LATE_US_MAX: Final = 500_000
"""p99 of how late the clients themselves were in sending."""
MEMORY_SHARE_MAX: Final = 0.1
MEMORY_BYTES_MAX: Final = 16 << 20
"""A process may grow by this share, or so many bytes, from the first half of the window to the second."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One demand, and what was measured."""

    what: str
    measured: str
    bound: str
    holds: bool


def findings(highest: float, past: Result, after: Result) -> list[Finding]:
    """`past` is the run at twice the `highest` rate, `after` the run right behind it."""
    share = past.throughput / highest
    refused = _refused(past)
    refused_us, count = percentile_us(refused, 50), sum(refused.values())
    settled_s = settled_after(past)
    grown = grown_most(past.memory)
    again = after.outcomes.get(Outcome.REJECTED, 0)
    return [
        _finding(
            "answered, of the highest rate", f"{share:.2f}", f"{ANSWERED_SHARE_MIN:g}", share >= ANSWERED_SHARE_MIN
        ),
        _finding(
            "refused, median time",
            f"{count}, {_ms(refused_us)}",
            _ms(REFUSED_US_MAX),
            count > 0 and refused_us <= REFUSED_US_MAX,
        ),
        _finding("without a reply", f"{past.missed}", "0", not past.missed),
        _finding("answered, p99", _ms(past.answered.p99_us), _ms(WAIT_US_MAX), past.answered.p99_us <= WAIT_US_MAX),
        _finding(
            "memory of the process that grew most",
            f"{grown.process}: {grown.first / 2**20:.0f} to {grown.second / 2**20:.0f} MiB",
            "flat",
            grown.over <= 0,
        ),
        _finding(
            "last reply after the load",
            f"{settled_s:.1f} s",
            f"{NORMAL_SECONDS_MAX:g} s",
            settled_s <= NORMAL_SECONDS_MAX,
        ),
        _finding(
            "p99 afterwards, and refused",
            f"{_ms(after.answered.p99_us)}, {again}",
            f"{_ms(NORMAL_US_MAX)}, 0",
            after.answered.p99_us <= NORMAL_US_MAX and not again and after.answered.count > 0,
        ),
        # Else all the rest says nothing: the clients have sent less than twice the rate, and waits are their own.
        _finding(
            "clients kept up, late by p99", _ms(past.late.p99_us), _ms(LATE_US_MAX), past.late.p99_us <= LATE_US_MAX
        ),
    ]


def settled_after(past: Result) -> float:
    """Seconds from the end of the load to the last reply, as exact as the time line; 0 if none came later."""
    ends = [point.at_s + past.plan.interval_s for point in past.timeline if any(map(point.outcomes.get, ANSWERED))]
    return max([0.0, *(end - past.window_s for end in ends)])


class Grown(NamedTuple):
    """A process, and the most memory that it had in the first half of the window and in the second."""

    process: str
    first: int
    second: int

    @property
    def over(self) -> float:
        """Bytes beyond what it may grow by."""
        return self.second - self.first - max(MEMORY_SHARE_MAX * self.first, MEMORY_BYTES_MAX)


def grown_most(memory: Mapping[str, Sequence[int]]) -> Grown:
    """Of a series for each process, of two samples or more."""
    halves = {process: _halves(series) for process, series in memory.items() if len(series) > 1}
    grown = (Grown(process, max(first), max(second)) for process, (first, second) in halves.items())
    return max(grown, key=lambda each: each.over, default=Grown("none", 0, 0))


def _halves(series: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    middle = (len(series) + 1) // 2
    return series[:middle], series[middle:]


def _refused(past: Result) -> Cells:
    cells: Cells = {}
    for by_outcome in past.latency.values():
        if Outcome.REJECTED in by_outcome:
            merge(cells, decode(by_outcome[Outcome.REJECTED].hdr))
    return cells


def _finding(what: str, measured: str, bound: str, holds: bool) -> Finding:
    return Finding(what=what, measured=measured, bound=bound, holds=holds)


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:.0f} ms"

"""The time line of a run: requests and replies in each interval."""

from __future__ import annotations

import msgspec

from benchmarks.driver.latency import cell_end, percentile_us
from benchmarks.driver.measure import Measurement
from benchmarks.driver.target import Outcome


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One interval of the time line, which begins `at_s` seconds after the window's start (before it: warm-up).

    `sent` requests left in it; `outcomes` and latencies are those of the replies that came in it.
    """

    at_s: float
    sent: int
    outcomes: dict[Outcome, int]
    p50_us: int
    p99_us: int
    max_us: int


def timeline_of(measured: Measurement) -> list[Point]:
    """The intervals in which anything was sent or came."""
    plan = measured.plan
    return [
        Point(
            at_s=round(number * plan.interval_s - plan.warm_up_s, 6),
            sent=interval.sent,
            outcomes=interval.outcomes,
            p50_us=percentile_us(interval.latency, 50),
            p99_us=percentile_us(interval.latency, 99),
            max_us=cell_end(max(interval.latency)) if interval.latency else 0,
        )
        for number, interval in sorted(measured.report.intervals.items())
    ]

"""What client processes report, while a run lasts and at its end, and how several reports become one."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from benchmarks.driver.latency import Cells, merge
from benchmarks.driver.target import Outcome

K = TypeVar("K")


class Progress(msgspec.Struct, kw_only=True):
    """One client's last interval, the `number`th; counts since the run's start, `latency` of the interval alone."""

    number: int = 0
    sent: int = 0
    outcomes: dict[Outcome, int] = {}
    in_flight: int = 0
    shed: int = 0
    latency: Cells = {}

    def add(self, other: Progress) -> None:
        """Another client's, of the same interval."""
        self.sent += other.sent
        self.in_flight += other.in_flight
        self.shed += other.shed
        _add(self.outcomes, other.outcomes)
        merge(self.latency, other.latency)


class IntervalReport(msgspec.Struct, kw_only=True):
    """One interval of the time line: requests by the time they were due, replies by the time they came."""

    sent: int = 0
    outcomes: dict[Outcome, int] = {}
    latency: Cells = {}


class RunReport(msgspec.Struct, kw_only=True):
    """One run, of one client or of all of them.

    `due`, `sent`, `shed`, `outcomes` and `latency` are of the requests due in the window; `late` is how much
    later than due they were sent. `replied` are the replies that came within the window, also to requests due before
    it: what the target could do in that time. `intervals` are numbered from the run's start,
    warm-up included. `outside` are the outcomes of requests due before the window. `gave_up` says why a run ended
    before its time, empty if it did not. `window_s` is the length of the window: shorter than planned after that.
    """

    due: int = 0
    sent: int = 0
    shed: int = 0
    replied: dict[Outcome, int] = {}
    outcomes: dict[Outcome, int] = {}
    outside: dict[Outcome, int] = {}
    errors: dict[str, int] = {}
    """Warm-up included, by outcome and why: `aborted:InsufficientFunds`, `rejected:overloaded`, `missed:timeout`."""
    latency: dict[str, dict[Outcome, Cells]] = {}
    """By kind of request and outcome."""
    steps: dict[str, dict[Outcome, Cells]] = {}
    """The same of requests that prepare others (`Planned.step`)."""
    late: Cells = {}
    intervals: dict[int, IntervalReport] = {}
    gave_up: str = ""
    window_s: float = 0.0

    def add(self, other: RunReport) -> None:
        """Another client's report of the same run."""
        self.due += other.due
        self.sent += other.sent
        self.shed += other.shed
        _add(self.replied, other.replied)
        _add(self.outcomes, other.outcomes)
        _add(self.outside, other.outside)
        _add(self.errors, other.errors)
        for mine_all, others_all in ((self.latency, other.latency), (self.steps, other.steps)):
            for kind, by_outcome in others_all.items():
                for outcome, cells in by_outcome.items():
                    merge(mine_all.setdefault(kind, {}).setdefault(outcome, {}), cells)
        merge(self.late, other.late)
        for number, interval in other.intervals.items():
            mine = self.intervals.setdefault(number, IntervalReport())
            mine.sent += interval.sent
            _add(mine.outcomes, interval.outcomes)
            merge(mine.latency, interval.latency)
        self.gave_up = self.gave_up or other.gave_up
        self.window_s = max(self.window_s, other.window_s)


def _add(counts: dict[K, int], other: dict[K, int]) -> None:
    for key, count in other.items():
        counts[key] = counts.get(key, 0) + count

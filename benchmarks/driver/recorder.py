"""One client's counts during a run: latencies by kind and outcome, and the time line.

The send loop and its callbacks only append integers to lists. Once an interval the lists become counts in cells.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from benchmarks.driver.latency import Cells, merge, record
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.reports import IntervalReport, Progress, RunReport
from benchmarks.driver.target import ANSWERED, Outcome

PROGRESS_SECONDS: Final = 1.0
"""The time between two reports of progress."""


class Kept(NamedTuple):
    """The key under which latencies are kept together. `counted` says that the requests were due in the window."""

    kind: str
    outcome: Outcome
    counted: bool


class Recorder:
    """Times are `time.monotonic` seconds."""

    def __init__(self, plan: LoadPlan, start_s: float) -> None:
        self.latencies: dict[tuple[str, Outcome, bool], list[int]] = {}
        """Latencies of the open interval in microseconds. The keys are `Kept` as plain tuples, which cost less to make.
        """
        self.steps: dict[tuple[str, Outcome], list[int]] = {}
        """Latencies of the window's steps (`Planned.step`), by kind and outcome."""
        self.late: list[int] = []
        """The delay in sending each request of the window, in microseconds."""
        self.errors: Counter[str] = Counter()
        self.replied: Counter[Outcome] = Counter()
        """Replies that came within the window."""
        self.sent = 0
        """In all, as `shed`."""
        self.shed = 0
        self.window_sent = 0
        self.window_shed = 0
        self.window_from_s = start_s + plan.warm_up_s
        self.window_to_s = self.window_from_s + plan.duration_s
        self.rolls_s = start_s + plan.interval_s
        """When the open interval ends."""
        self._plan = plan
        self._start_s = start_s
        self._number = 0
        self._sent_before = 0
        self._report = RunReport()
        self._outcomes: Counter[Outcome] = Counter()
        self._since_told: Cells = {}
        self._told = 0

    def end_window(self, now_s: float) -> None:
        """The run is given up: the window ends now, if it has not ended, and is empty if it has not begun."""
        self.window_to_s = min(self.window_to_s, max(now_s, self.window_from_s))

    def roll(self, now_s: float) -> None:
        """Ends the open interval and begins the interval of `now_s`, which is later than `rolls_s`."""
        interval = self._close_interval()
        if interval.sent or interval.outcomes:
            self._report.intervals[self._number] = interval
        self._number = int((now_s - self._start_s) / self._plan.interval_s)
        self.rolls_s = max(self._start_s + (self._number + 1) * self._plan.interval_s, now_s)

    def progress(self, now_s: float, in_flight: int) -> Progress | None:
        """Once in `PROGRESS_SECONDS`, what to tell."""
        number = int((now_s - self._start_s) / PROGRESS_SECONDS)
        if number <= self._told:
            return None
        self._told, latency, self._since_told = number, self._since_told, {}
        return Progress(
            number=number,
            sent=self.sent,
            outcomes=dict(self._outcomes),
            in_flight=in_flight,
            shed=self.shed,
            latency=latency,
        )

    def finish(self, gave_up: str) -> RunReport:
        """The report, after the last reply."""
        last = self._close_interval()
        if last.sent or last.outcomes:
            self._report.intervals[self._number] = last
        report = self._report
        report.due = self.window_sent + self.window_shed
        report.sent, report.shed = self.window_sent, self.window_shed
        report.replied, report.errors = dict(self.replied), dict(self.errors)
        report.window_s = self.window_to_s - self.window_from_s
        report.gave_up = gave_up
        record(report.late, self.late)
        return report

    def _record_steps(self) -> None:
        for (kind, outcome), latencies in self.steps.items():
            record(self._report.steps.setdefault(kind, {}).setdefault(outcome, {}), latencies)
        self.steps = {}

    def _close_interval(self) -> IntervalReport:
        report = self._report
        interval = IntervalReport(sent=self.sent - self._sent_before)
        self._sent_before = self.sent
        for key, latencies in self.latencies.items():
            kept, count, cells = Kept(*key), len(latencies), Cells()
            record(cells, latencies)
            outcomes = report.outcomes if kept.counted else report.outside
            for totals in (outcomes, interval.outcomes, self._outcomes):
                totals[kept.outcome] = totals.get(kept.outcome, 0) + count
            if kept.counted:
                merge(report.latency.setdefault(kept.kind, {}).setdefault(kept.outcome, {}), cells)
            if kept.outcome in ANSWERED:
                merge(interval.latency, cells)
                merge(self._since_told, cells)
        self.latencies = {}
        self._record_steps()
        return interval

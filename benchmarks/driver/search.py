"""The search for the highest rate with p99 under a bound. It chooses the next rate, and decides whether a step has
passed. Pure.

It doubles the rate until a step fails, then halves the gap between the highest rate that passed and the lowest that
failed, until that is small enough. A rate counts as too high after it has failed `tries` times, because on a shared
machine one step may fail by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from benchmarks.driver.result import Result
from benchmarks.driver.target import Outcome

STEPS_MAX: Final = 40
TRIES_DEFAULT: Final = 2
SLOW_REPEATS_MAX: Final = 2
"""How often a rate that failed in a slow phase of the machine is tried again, before it counts."""
RATE_MAX: Final = 500_000.0
RATE_MIN: Final = 1.0
PRECISION_DEFAULT: Final = 0.1
THROUGHPUT_SHARE_MIN: Final = 0.96
"""The share of the rate that must be answered within the window. With a smaller share, a backlog was growing."""


class Rates(Protocol):
    """Chooses the next rate."""

    @property
    def passed(self) -> float:
        """The highest rate that has passed; 0 if none has."""

    @property
    def ended(self) -> str:
        """Why there is no next step; empty while there is one."""

    def next_rate(self) -> float | None:
        """Requests a second of the next step; None: there is none."""

    def record(self, rate: float, passed: bool) -> None:
        """What the step at `rate` gave."""


class RateSearch:
    """Repeat until `next_rate` is None: run a step at `next_rate`, and pass its result to `record`. The search ends
    when the lowest failed rate is at most the share `precision` above the highest passed rate.
    """

    def __init__(self, first_rate: float, precision: float = PRECISION_DEFAULT, tries: int = 1) -> None:
        self.passed = 0.0
        self.failed: float | None = None
        self._first_rate = first_rate
        self._precision = precision
        self._tries = tries
        self._steps = 0
        self._failures: dict[float, int] = {}

    def next_rate(self) -> float | None:
        """Requests a second of the next step."""
        return None if self.ended else self._candidate()

    def record(self, rate: float, passed: bool) -> None:
        """What the step at `rate` gave."""
        self._steps += 1
        if passed:
            self.passed = max(self.passed, rate)
            return
        self._failures[rate] = self._failures.get(rate, 0) + 1
        if self._failures[rate] >= self._tries:
            self.failed = rate if self.failed is None else min(self.failed, rate)

    @property
    def ended(self) -> str:
        """Why there is no next step; empty while there is one."""
        if self.failed is not None and self.passed and self.failed <= self.passed * (1 + self._precision):
            return f"{self.failed:.0f}/s is too much"
        if self._steps >= STEPS_MAX:
            return f"{STEPS_MAX} steps"
        candidate = self._candidate()
        if candidate < RATE_MIN:
            return f"even {RATE_MIN:g}/s is too much"
        if candidate > RATE_MAX:
            return f"no rate up to {RATE_MAX:g}/s is too much"
        return ""

    def _candidate(self) -> float:
        retried = [rate for rate, times in self._failures.items() if times < self._tries and rate > self.passed]
        if retried:
            return min(retried)
        if self.failed is None:
            return self.passed * 2 or self._first_rate
        if not self.passed:
            return self.failed / 2
        return _rounded((self.passed + self.failed) / 2)


class GivenFirst:
    """Given rates, each once, and then the search, which has learnt from them; without one they are all."""

    def __init__(self, given: Sequence[float], searching: RateSearch, goes_on: bool) -> None:
        self._given = [*given]
        self._searching = searching
        self._goes_on = goes_on

    @property
    def passed(self) -> float:
        """See `Rates.passed`."""
        return self._searching.passed

    @property
    def ended(self) -> str:
        """See `Rates.ended`."""
        if self._given:
            return ""
        return self._searching.ended if self._goes_on else "no other rate was tried"

    def next_rate(self) -> float | None:
        """See `Rates.next_rate`."""
        if self._given:
            return self._given[0]
        return self._searching.next_rate() if self._goes_on else None

    def record(self, rate: float, passed: bool) -> None:
        """See `Rates.record`."""
        if self._given:
            del self._given[0]
        self._searching.record(rate, passed)


def reasons_against(result: Result, bound_s: float, throughput_share: float = THROUGHPUT_SHARE_MIN) -> list[str]:
    """The reasons why a step failed; empty if it passed. The share `throughput_share` of the due requests must have
    been answered.
    """
    found = []
    if result.gave_up:
        found.append("given up")
    if result.answered.p99_us >= bound_s * 1e6:
        found.append(f"p99 {result.answered.p99_us / 1e6:.2f} s")
    if result.missed:
        found.append(f"{result.missed} missed")
    if result.shed:
        found.append(f"{result.shed} shed")
    rejected = result.outcomes.get(Outcome.REJECTED, 0)
    if rejected:
        found.append(f"{rejected} rejected")
    if not result.gave_up and result.throughput < throughput_share * result.offered_rate:
        found.append(f"only {result.throughput:.0f}/s answered")
    if not result.answered.count:
        found.append("nothing answered")
    return found


def _rounded(rate: float) -> float:
    """Rounds to three digits."""
    return float(f"{rate:.3g}")

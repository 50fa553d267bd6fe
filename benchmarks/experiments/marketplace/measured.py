"""What was seen of one setting at one number, a figure for each run, and how two settings compare. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from benchmarks.driver.probe import ENGINES
from benchmarks.driver.result import Result
from benchmarks.driver.target import Outcome
from benchmarks.experiments.medians import median


class OfKind(msgspec.Struct):
    """Of one kind of transaction: answers a second, and latencies in microseconds."""

    rate: list[float] = []
    p50_us: list[int] = []
    p99_us: list[int] = []


class Measured(msgspec.Struct, kw_only=True):
    """`number` is None where an experiment goes through none.

    `rate` is transactions a second. `compared` are those of the kinds that all settings have, and `cpu_us` is the
    engines' processor time for one of these, in microseconds. `epoch` is transactions an epoch, `locked` the share of
    the transactions that ended in a lock phase, `failed` the number of requests with any answer but a commit.
    """

    setting: str
    number: float | None
    rate: list[float] = []
    compared: list[float] = []
    cpu_us: list[float] = []
    p50_us: list[int] = []
    p99_us: list[int] = []
    epoch: list[float] = []
    locked: list[float] = []
    failed: list[int] = []
    kinds: dict[str, OfKind] = {}

    def add(self, result: Result, apart: str) -> None:
        """One more run; `apart` is the kind that is not compared, if any."""
        committed = {
            kind: each[Outcome.COMMITTED] for kind, each in result.latency.items() if Outcome.COMMITTED in each
        }
        # Shares instead of counts: the counts are of requests sent in the window, the throughput of replies in it.
        of_one = result.throughput / max(result.answered.count, 1)
        compared = result.throughput - (of_one * committed[apart].count if apart in committed else 0.0)
        engines_s = result.throughput * sum(result.cpu_us.get(role, 0.0) for role in ENGINES)
        epochs, transactions, locked = _epochs(result)
        self.rate.append(result.throughput)
        self.compared.append(compared)
        self.cpu_us.append(engines_s / compared if compared else 0.0)
        self.p50_us.append(result.answered.p50_us)
        self.p99_us.append(result.answered.p99_us)
        self.epoch.append(transactions / epochs if epochs else 0.0)
        self.locked.append(locked / transactions if transactions else 0.0)
        self.failed.append(sum(result.errors.values()))
        for kind, latency in committed.items():
            seen = self.kinds.setdefault(kind, OfKind())
            seen.rate.append(of_one * latency.count)
            seen.p50_us.append(latency.p50_us)
            seen.p99_us.append(latency.p99_us)


def _epochs(result: Result) -> tuple[float, float, float]:
    """Epochs of all engines, the transactions in them, and those of these that ended in a lock phase."""
    counted = [result.counters.get(role, {}) for role in ENGINES]
    return (
        sum(each.get("styx_epochs_total", 0.0) for each in counted),
        sum(value for each in counted for name, value in each.items() if name.startswith("styx_transactions_total{")),
        sum(each.get("styx_lock_phase_transactions_total", 0.0) for each in counted),
    )


class Ratio(NamedTuple):
    """The median of some runs' ratios, with the least and the greatest."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median:.0%} ({self.least:.0%}-{self.most:.0%})"


def ratio(ones: Sequence[float], others: Sequence[float]) -> Ratio | None:
    """Of the runs of one by those of another in the same turns; None if there is no run of both."""
    found = [one / other for one, other in zip(ones, others, strict=False) if other]
    middle = median(found)
    return None if middle is None else Ratio(middle, min(found), max(found))

"""The verdict on each target: the median of the runs decides whether the target holds. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from benchmarks.experiments.targets.declared import GROUPS, Target
from benchmarks.experiments.text_table import text_table
from styx.errors import ConfigurationError

HEADINGS: Final = ("what", "measured (range)", "target", "holds", "medians")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run's figure: `over` by `under`, or `over` alone if that is None; both in `unit`."""

    over: float
    under: float | None = None
    unit: str = ""

    @property
    def value(self) -> float:
        """What is held against the target."""
        return self.over if self.under is None else self.over / self.under


class Verdict:
    """Of one target; `failed` says why there is nothing, or not all, to look at."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.runs: list[Run] = []
        self.failed = ""

    @property
    def measured(self) -> float | None:
        """The median of the runs."""
        return statistics.median(run.value for run in self.runs) if self.runs else None

    @property
    def holds(self) -> bool:
        """Never of a target that was not measured, or only in part; without a bound that is all there is to it."""
        measured, bound = self.measured, self.target.bound
        if measured is None or self.failed:
            return False
        if bound is None:
            return True
        return measured >= bound if self.target.at_least else measured <= bound

    @property
    def used(self) -> tuple[float, float, float] | None:
        """How much of its bound it takes, 1 being all of it: the median, the best and the worst run."""
        measured, bound = self.measured, self.target.bound
        if measured is None or bound is None:
            return None
        low, high = min(run.value for run in self.runs), max(run.value for run in self.runs)
        if self.target.at_least:
            return bound / max(measured, 1e-9), bound / max(high, 1e-9), bound / max(low, 1e-9)
        return measured / bound, low / bound, high / bound

    def report(self) -> dict[str, object]:
        """For the result file."""
        target = self.target
        return {
            **target._asdict(),
            "measured": self.measured,
            "runs": [{"value": run.value, "over": run.over, "under": run.under, "unit": run.unit} for run in self.runs],
            "holds": self.holds,
            "failed": self.failed,
        }


def chosen(targets: Sequence[Target], words: Iterable[str]) -> list[Target]:
    """Those with these names or of these groups, all for no word; raises `ConfigurationError` for an unknown one."""
    wanted = set(words)
    unknown = wanted - {target.name for target in targets} - set(GROUPS)
    if unknown:
        known = ", ".join(target.name for target in targets)
        raise ConfigurationError(
            f"--only {min(unknown)}: there is no such target. There are {known}, and the groups {', '.join(GROUPS)}"
        )
    return [target for target in targets if not wanted or wanted & {target.name, target.group}]


def table(verdicts: Sequence[Verdict]) -> str:
    """For people: a row each."""
    return text_table(HEADINGS, [_row(verdict) for verdict in verdicts])


def _row(verdict: Verdict) -> tuple[str, str, str, str, str]:
    target, runs = verdict.target, verdict.runs
    if runs:
        values = [run.value for run in runs]
        low, high = _figure(min(values), target.unit), _figure(max(values), target.unit)
        measured = f"{_figure(verdict.measured or 0.0, target.unit)} ({low}-{high})"
    else:
        measured = "-"
    holds = "yes" if verdict.holds else "NO"
    bound = _bound(target)
    if bound is None:
        bound, holds = target.explains, "-"
    return target.what, measured, bound, holds, verdict.failed or _medians(runs)


def _medians(runs: Sequence[Run]) -> str:
    both = [(run.over, run.under) for run in runs if run.under is not None]
    if not both:
        return ""
    over, under = (statistics.median(each) for each in zip(*both, strict=True))
    return f"{over:.4g} by {under:.4g} {runs[0].unit}"


def _figure(value: float, unit: str) -> str:
    return f"{value:.1%}" if unit == "share" else f"{value:.4g}" if value >= 1000 else f"{value:.3g}"


def _bound(target: Target) -> str | None:
    if target.bound is None:
        return None
    bound = f"{target.bound:.0%}" if target.unit == "share" else f"{target.bound:g} {target.unit}"
    return f"{'>=' if target.at_least else '<='} {bound}"

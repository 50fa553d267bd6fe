"""One step of an experiment: a setting at a number, as the words of the workload's command, run and audited."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from benchmarks.driver.result import Result
from benchmarks.experiments.bench import Bench, Step, StepFailed
from benchmarks.experiments.marketplace.driven import driven
from benchmarks.experiments.marketplace.experiment import CLUSTER, Experiment, Setting
from benchmarks.experiments.settings import Common
from benchmarks.experiments.subject import shown

BROKER_WARM_SECONDS: Final = 10.0
"""More warm-up on a cluster: its broker is new in each step, and a new one needs several times its usual time."""
PATIENCE_SECONDS: Final = 120.0
"""A request may take so long: with many at once, transactions that conflict wait for each other."""


class Cell(NamedTuple):
    """A setting of an experiment, at a number if the experiment goes through some."""

    experiment: Experiment
    setting: Setting
    number: float | None

    @property
    def name(self) -> str:
        """For people and results."""
        numbers = self.experiment.numbers
        return self.setting.name if numbers is None else f"{self.setting.name}, {numbers.label} {self.number:g}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the experiment and the setting, by name."""
        words = f"{self.experiment.variables} {self.setting.variables}".split()
        return dict(word.split("=", 1) for word in words)


def words_of(
    cell: Cell, common: Common, options: argparse.Namespace, more: Sequence[str] = (), *, closed: bool = True
) -> list[str]:
    """The words behind `run`. Later ones win: those of the command's user over all others but the setting's number.

    `closed`: as many requests are under way all the time as the options say, else `more` or the setting has the rate.
    """
    experiment, setting, number = cell
    on = options.on or experiment.on
    warm_up_s = common.warm_up_s + (BROKER_WARM_SECONDS if on == CLUSTER else 0.0)
    words = [
        *("--on", on, "--slots", str(common.slots)),
        *("--duration", f"{common.window_s:g}", "--warm-up", f"{warm_up_s:g}"),
        *("--timeout", f"{PATIENCE_SECONDS:g}", "--drain", f"{PATIENCE_SECONDS:g}"),
        *(["--workers", str(options.workers), "--clients", str(common.clients)] if on == CLUSTER else []),
        *(["--concurrency", str(options.concurrency)] if closed and not experiment.open else []),
        *experiment.words.split(),
        *setting.words.split(),
        *more,
        *options.more.split(),
        *([] if common.audit else ["--no-audit"]),
    ]
    if experiment.numbers is not None:
        words += [experiment.numbers.option, f"{number:g}"]
    return words


async def measure_step(
    bench: Bench, options: argparse.Namespace, cell: Cell, more: Sequence[str] = (), *, closed: bool = True
) -> Result:
    """Runs it, and again if the machine was in a slow phase. Raises `StepFailed`, also if nothing was answered within
    the window, and `ConfigurationError`.
    """
    words = words_of(cell, bench.common, options, more, closed=closed)

    async def once() -> Result:
        result = await driven(cell.experiment.workload, words, cell.environment)
        bench.steps.append(Step(subject=cell.name, result=result))
        return result

    result = await bench.quiet(partial(once))
    bench.say(f"{cell.name}: {result.throughput:.4g}/s, {shown(result)}")
    if not result.throughput:
        raise StepFailed(f"{cell.name}: nothing was answered in {result.plan.duration_s:g} s; use a longer --window")
    return result

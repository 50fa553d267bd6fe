"""`python -m benchmarks.experiments targets`: do the targets hold on this machine?

Each is a ratio of two things measured in turns (A B, B A, ...), so that the machine's speed cancels out; a fixed piece
of work is timed beside each step, and steps in slow phases are repeated. A row without a target explains the row above
it. Exit status 0: all hold. 1: one does not, or could not be measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from typing import Final

from benchmarks.driver.environment import environment
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.failures import FAILURES, reason
from benchmarks.experiments.report import bench_report, write_json
from benchmarks.experiments.settings import Common, common_of
from benchmarks.experiments.settings import add_options as add_common_options
from benchmarks.experiments.targets.declared import GROUPS, TARGETS
from benchmarks.experiments.targets.verdict import Verdict, chosen, table
from benchmarks.reference.line import FAILED, OK, run_command
from styx.errors import ConfigurationError

MANY_KEYS_DEFAULT: Final = 1_000_000

Measure = Callable[[Bench, Mapping[str, Verdict], int], Awaitable[None]]
"""A group's `measure`: of these targets by name, with so many accounts where there are to be many. It adds the runs."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    names = ", ".join(target.name for target in TARGETS)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help=f"only this target or group of targets; repeatable. Targets: {names}. Groups: {', '.join(GROUPS)}",
    )
    parser.add_argument(
        "--many-keys",
        type=int,
        default=MANY_KEYS_DEFAULT,
        metavar="N",
        help="accounts of the targets snapshots and memory, which are about 1 M (default %(default)s)",
    )
    add_common_options(parser, Common())


def run(options: argparse.Namespace) -> int:
    """Measures and prints; the exit status."""
    return run_command(_run(options))


async def _run(options: argparse.Namespace) -> int:
    bench = Bench(common_of(options))
    if options.many_keys < 1000:
        raise ConfigurationError(f"--many-keys is a number of 1000 or more, got {options.many_keys}")
    verdicts = [Verdict(target) for target in chosen(TARGETS, options.only)]
    for group in GROUPS:
        of_group = {verdict.target.name: verdict for verdict in verdicts if verdict.target.group == group}
        if of_group:
            bench.say(f"== {group}: {', '.join(of_group)}")
            await _measure(group, bench, of_group, options.many_keys)
            _write(bench, verdicts)
    text = table(verdicts)
    print(text)
    return OK if all(verdict.holds for verdict in verdicts) else FAILED


async def _measure(group: str, bench: Bench, verdicts: Mapping[str, Verdict], many_keys: int) -> None:
    """A group that fails leaves the others to be measured."""
    measure: Measure = import_module(f"benchmarks.experiments.targets.{group}").measure
    try:
        await measure(bench, verdicts, many_keys)
    except FAILURES as error:
        why = reason(error)
        bench.say(f"{group} FAILED: {why}")
        for verdict in verdicts.values():
            verdict.failed = verdict.failed or why.splitlines()[0]


def _write(bench: Bench, verdicts: Sequence[Verdict]) -> None:
    """After each group, so that an interrupted run leaves what it had."""
    from benchmarks.experiments.targets.chart import write_chart  # matplotlib takes its time to load

    out = bench.common.out
    out.mkdir(parents=True, exist_ok=True)
    where = environment()
    (out / "targets.txt").write_text(table(verdicts) + "\n", "utf-8")
    write_chart(out / "targets.svg", verdicts, f"Targets, {where.interpreter}, {where.processors} processors")
    report = {"experiment": "targets", **bench_report(bench), "targets": [verdict.report() for verdict in verdicts]}
    write_json(out / "targets.json", report)

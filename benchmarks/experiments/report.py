"""Carries out an experiment and writes its results: figures (JSON), charts (SVG), table (text).

An experiment adds each result to a list at once. So an experiment that fails halfway still shows its first results.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from benchmarks.driver.environment import environment
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.failures import FAILURES, reason
from benchmarks.experiments.settings import common_of
from benchmarks.reference.line import FAILED, OK, run_command
from styx.errors import ConfigurationError

FORMAT: Final = 1


class Shown(NamedTuple):
    """A table, and what draws each chart into a file, by the file's name without its ending."""

    text: str
    charts: Mapping[str, Callable[[Path], None]]


Found = TypeVar("Found", bound=msgspec.Struct)
Measure = Callable[[Bench, argparse.Namespace, list[Found]], Awaitable[None]]
"""Adds to the list; raises `ConfigurationError` for wrong options before it starts anything, and `FAILURES`."""
Show = Callable[[Sequence[Found]], Shown]
"""Of a list that is not empty."""


def carry_out(name: str, options: argparse.Namespace, measure: Measure[Found], show: Show[Found]) -> int:
    """Measures, writes and prints; the exit status."""
    return run_command(_carried_out(name, options, measure, show))


async def _carried_out(name: str, options: argparse.Namespace, measure: Measure[Found], show: Show[Found]) -> int:
    bench = Bench(common_of(options))
    found: list[Found] = []
    failed = ""
    try:
        await measure(bench, options, found)
    except ConfigurationError:
        raise
    except FAILURES as error:
        failed = reason(error)
        bench.say(f"{name} FAILED: {failed}")
    _write(bench, name, found, show, failed)
    return FAILED if failed else OK


def _write(bench: Bench, name: str, found: Sequence[Found], show: Show[Found], failed: str) -> None:
    out = bench.common.out
    out.mkdir(parents=True, exist_ok=True)
    report = {"experiment": name, **bench_report(bench), "failed": failed, "found": msgspec.to_builtins(found)}
    write_json(out / f"{name}.json", report)
    if found:
        shown = show(found)
        (out / f"{name}.txt").write_text(shown.text + "\n", "utf-8")
        for chart, draw in shown.charts.items():
            draw(out / f"{chart}.svg")
        print(shown.text)
    bench.say(f"written to {out}")


def bench_report(bench: Bench) -> dict[str, Any]:
    """What every result file of an experiment has, beside what the experiment is about."""
    return {
        "format": FORMAT,
        "environment": msgspec.to_builtins(environment()),
        **bench.facts(),
        "steps": msgspec.to_builtins(bench.steps),
    }


def write_json(path: Path, report: Mapping[str, Any]) -> None:
    """Raises `OSError`."""
    path.write_text(json.dumps(report, indent=1) + "\n", "utf-8")

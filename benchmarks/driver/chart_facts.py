"""The text below a chart. It says what was measured, where and when, by the result files.

Facts that all results share appear once; other facts appear for each result. Pure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from benchmarks.driver.environment import Environment
from benchmarks.driver.result import Result, SearchResult
from benchmarks.driver.workload import Audit

LINE_CHARS: Final = 124
"""The characters that fit below the narrowest chart."""
_DAY_CHARS: Final = len("2025-06-22")
_GIB: Final = 2**30

Shown = Result | SearchResult


def facts(results: Sequence[Shown]) -> list[str]:
    """The lines: machine, system, deployment, workload, load, audit."""
    runs = [run for result in results for run in _runs(result)]
    places = [run.environment for run in runs]
    lines = [
        _each(places, _machine),
        _each(places, lambda place: f"{place.kernel}, {place.interpreter}"),
        _each(results, lambda result: _pairs(result.deployment, first="kind")),
        _each(results, lambda result: f"{result.workload}: {_pairs(result.settings)}"),
        f"{_each(runs, _load)}; {_each(places, lambda place: place.taken_at[:_DAY_CHARS] or 'no date')}; "
        + _each(results, lambda result: _audit(result.audit)),
    ]
    return [part for line in lines for part in textwrap.wrap(line, LINE_CHARS, subsequent_indent="   ")]


def _runs(result: Shown) -> list[Result]:
    return [result] if isinstance(result, Result) else [step.result for step in result.steps]


def _each(things: Iterable[Any], describe: Callable[[Any], str]) -> str:
    """Each description once, in the order of `things`."""
    return " | ".join(dict.fromkeys(map(describe, things)))


def _machine(place: Environment) -> str:
    return f"{place.processor}, {place.processors} processors, {place.memory_bytes / _GIB:.1f} GiB"


def _load(run: Result) -> str:
    plan = run.plan
    clients = f"{plan.clients} client process{'es' * (plan.clients > 1)}"
    return f"{clients}, {plan.arrivals} arrivals, {plan.duration_s:g} s after {plan.warm_up_s:g} s of warm-up"


def _audit(audit: Audit | None) -> str:
    return "not audited" if audit is None else "audit FAILED" if audit.violations else "audit passed"


def _pairs(named: dict[str, Any], first: str = "") -> str:
    """`name value` of each that is not None, False, 0 or empty; the value of `first` goes without its name."""
    words = [str(named[first])] if first in named else []
    words += [_pair(name.replace("_", " "), value) for name, value in named.items() if value and name != first]
    return ", ".join(words)


def _pair(name: str, value: Any) -> str:
    if value is True:
        return name
    return f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}"

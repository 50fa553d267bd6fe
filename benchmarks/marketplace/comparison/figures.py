"""What a comparison has measured, and its table. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from benchmarks.driver.result import Result
from benchmarks.driver.session import CLIENT_ROLE
from benchmarks.driver.target import ANSWERED
from benchmarks.experiments.text_table import text_table

STYX: Final = "Styx"
POSTGRES: Final = "PostgreSQL"
_HEADINGS: Final = ("sellers", "turn", "line", "rate/s", "p50 ms", "p99 ms", "server µs", "again", "errors", "audit")


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One window of one line. `zipf` is the exponent of the sellers' popularity, `turn` counts from 1. `again` is how
    often something was run again because of a conflict, per transaction: transactions in conflict, or undone ones.
    """

    line: str
    zipf: float
    turn: int
    again: float
    result: Result

    @property
    def server_us(self) -> float:
        """Processor time of all servers for a transaction, in microseconds; the client's is not in it."""
        return sum(us for role, us in self.result.cpu_us.items() if role != CLIENT_ROLE)

    @property
    def errors(self) -> int:
        """Requests that were neither answered nor refused by the application's own rules, and those it refused."""
        return sum(self.result.errors.values())

    @property
    def wrong(self) -> bool:
        """Whether something failed, or the state is not what the clients were told."""
        audit = self.result.audit
        return bool(self.errors or (audit is not None and audit.violations))


def answered(result: Result) -> int:
    """Transactions of the whole run, warm-up included."""
    return sum(each.get(outcome, 0) for each in (result.outcomes, result.outside) for outcome in ANSWERED)


def table(rows: Sequence[Figures]) -> str:
    """All windows in their order, then one line for each exponent that says how the two lines compare, and what was
    measured.
    """
    shown = [_row(each) for each in rows]
    ratios = [_ratio(zipf, rows) for zipf in dict.fromkeys(each.zipf for each in rows)]
    return "\n".join([text_table(_HEADINGS, shown), *ratios, *dict.fromkeys(map(_facts, rows))])


def ratio(rows: Sequence[Figures], zipf: float, figure: Callable[[Figures], float]) -> float:
    """Ours by PostgreSQL's, of the medians over all turns; 0 if PostgreSQL's is 0."""
    ours, theirs = (
        statistics.median(figure(each) for each in rows if (each.line, each.zipf) == (line, zipf))
        for line in (STYX, POSTGRES)
    )
    return ours / theirs if theirs else 0.0


def _row(each: Figures) -> tuple[str, ...]:
    result, audit = each.result, each.result.audit
    verdict = "-" if audit is None else "FAILED" if audit.violations else "passed"
    return (
        f"Zipf {each.zipf:g}" if each.zipf else "uniform",
        str(each.turn),
        each.line,
        f"{result.throughput:.0f}",
        f"{result.answered.p50_us / 1000:.1f}",
        f"{result.answered.p99_us / 1000:.1f}",
        f"{each.server_us:.0f}",
        f"{each.again:.1%}",
        str(each.errors),
        verdict,
    )


def _ratio(zipf: float, rows: Sequence[Figures]) -> str:
    rate = ratio(rows, zipf, lambda each: each.result.throughput)
    time = ratio(rows, zipf, lambda each: each.server_us)
    p99 = ratio(rows, zipf, lambda each: float(each.result.answered.p99_us))
    return f"Zipf {zipf:g}: {rate:.2f} times PostgreSQL's rate, {time:.2f} of its processor time, {p99:.2f} of its p99"


def _facts(each: Figures) -> str:
    """What was measured, with its durability, and the engine's form behind the interpreter."""
    facts = ", ".join(f"{name} {value}" for name, value in each.result.deployment.items() if name != "kind")
    return f"{each.line}: {each.result.deployment['kind']}, {facts}; {each.result.environment.interpreter}"

"""The table of a comparison: medians over the turns, servers without the client, and what counts as wrong."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.driver.result import Result
from benchmarks.driver.target import Outcome
from benchmarks.driver.workload import Audit
from benchmarks.marketplace.comparison.figures import POSTGRES, STYX, Figures, answered, ratio, table
from tests.benchmarks.driver import made


def figures(line: str, rate: float, turn: int = 1, zipf: float = 1.2, **given: object) -> Figures:
    changes: dict[str, object] = {"throughput": rate, "cpu_us": {"client": 900.0, "a": 100.0, "b": 50.0}}
    result: Result = msgspec.structs.replace(made.result(), **changes | given)
    return Figures(line=line, zipf=zipf, turn=turn, again=0.25, result=result)


def test_the_clients_time_is_not_the_servers() -> None:
    assert figures(STYX, 10).server_us == 150


def test_the_median_of_the_turns_counts() -> None:
    rows = [figures(STYX, rate, turn) for turn, rate in enumerate((300.0, 100.0, 310.0), 1)]
    rows += [figures(POSTGRES, rate, turn) for turn, rate in enumerate((100.0, 900.0, 100.0), 1)]
    rows += [figures(STYX, 7, zipf=0.0), figures(POSTGRES, 7, zipf=0.0)]
    assert ratio(rows, 1.2, lambda each: each.result.throughput) == pytest.approx(3.0)
    shown = table(rows)
    assert "Zipf 1.2: 3.00 times PostgreSQL's rate, 1.00 of its processor time" in shown
    assert "Zipf 0: 1.00 times PostgreSQL's rate" in shown
    assert len(shown.splitlines()) == 2 + len(rows) + 2 + 2, "a heading, the rows, the ratios, what both lines are"
    assert "uniform" in shown
    assert "25.0%" in shown


def test_what_was_measured_is_told_once() -> None:
    facts = {"kind": "FastAPI", "fsync": "on", "synchronous_commit": "off"}
    shown = table([figures(POSTGRES, 1, deployment=facts), figures(POSTGRES, 1, deployment=facts), figures(STYX, 1)])
    assert shown.count("PostgreSQL: FastAPI, fsync on, synchronous_commit off; Snake 9.9") == 1


def test_a_ratio_to_nothing_is_nothing() -> None:
    assert ratio([figures(STYX, 5), figures(POSTGRES, 0)], 1.2, lambda each: each.result.throughput) == 0


def test_errors_and_violations_are_wrong() -> None:
    assert not figures(STYX, 1, errors={}, audit=None).wrong
    assert not figures(STYX, 1, errors={}, audit=Audit(["all"], [])).wrong
    failed = figures(STYX, 1, errors={"missed:timeout": 2, "aborted:EmptyCart": 1}, audit=None)
    assert failed.wrong
    assert failed.errors == 3
    violated = figures(STYX, 1, errors={}, audit=Audit([], ["lost"]))
    assert violated.wrong
    assert "FAILED" in table([violated, figures(POSTGRES, 1)])


def test_transactions_of_the_warm_up_are_answered_too() -> None:
    outcomes = {Outcome.COMMITTED: 5, Outcome.MISSED: 3}
    result = figures(STYX, 1, outcomes=outcomes, outside={Outcome.ABORTED: 2}).result
    assert answered(result) == 7

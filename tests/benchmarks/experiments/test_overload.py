"""The verdict on a deployment past its limit: each demand can fail alone. And one real run, whatever it finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from benchmarks.driver.latency import Cells, record
from benchmarks.driver.result import Result, latency_of
from benchmarks.driver.target import Outcome
from benchmarks.driver.timeline import Point
from benchmarks.experiments.__main__ import main
from benchmarks.experiments.overload import WAYS
from benchmarks.experiments.overload_judge import Finding, findings, grown_most, settled_after
from benchmarks.reference.line import FAILED, OK, USAGE
from tests.benchmarks.driver.made import result

MIB = 1 << 20
HIGHEST = 100.0


def refused(latency_us: int) -> dict[Outcome, Cells]:
    cells: Cells = {}
    record(cells, [latency_us] * 50)
    return {Outcome.REJECTED: cells}


def past(latency_us: int = 900_000, refused_us: int = 2_000) -> Result:
    """At twice the highest rate: 100/s were answered for 10 s, the others refused."""
    made = result(100, latency_us)
    made.latency["add"][Outcome.REJECTED] = latency_of(refused(refused_us)[Outcome.REJECTED])
    made.memory = {"worker 1": [100 * MIB, 110 * MIB, 112 * MIB, 111 * MIB], "broker 2": [300 * MIB] * 4}
    return made


def wrong(found: list[Finding]) -> list[str]:
    return [each.what for each in found if not each.holds]


def test_a_deployment_that_stands_it_is_found_to() -> None:
    assert wrong(findings(HIGHEST, past(), result(50))) == []


def late_point(made: Result) -> None:
    last = Point(at_s=12.5, sent=0, outcomes={Outcome.COMMITTED: 1}, p50_us=1, p99_us=1, max_us=1)
    made.timeline = [*made.timeline, last]


def leak(made: Result) -> None:
    made.memory["worker 1"] = [100 * MIB, 120 * MIB, 140 * MIB, 160 * MIB]


def lose(made: Result) -> None:
    made.outcomes[Outcome.MISSED] = 1


def starve(made: Result) -> None:
    made.late = msgspec.structs.replace(made.late, p99_us=600_000)


def take_all(made: Result) -> None:
    del made.latency["add"][Outcome.REJECTED]


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (late_point, "last reply after the load"),
        (leak, "memory of the process that grew most"),
        (lose, "without a reply"),
        (starve, "clients kept up, late by p99"),
        (take_all, "refused, median time"),
    ],
)
def test_each_fault_is_found_alone(damage: Callable[[Result], None], what: str) -> None:
    made = past()
    damage(made)
    assert wrong(findings(HIGHEST, made, result(50))) == [what]


def test_rates_and_latencies_are_judged() -> None:
    assert wrong(findings(106.0, past(), result(50))) == ["answered, of the highest rate"]
    assert wrong(findings(HIGHEST, past(latency_us=2_100_000), result(50))) == ["answered, p99"]
    assert wrong(findings(HIGHEST, past(refused_us=150_000), result(50))) == ["refused, median time"]
    assert wrong(findings(HIGHEST, past(), result(50, 1_100_000))) == ["p99 afterwards, and refused"]
    again = result(50, outcomes={Outcome.COMMITTED: 499, Outcome.REJECTED: 1})
    assert wrong(findings(HIGHEST, past(), again)) == ["p99 afterwards, and refused"]


def test_what_is_refused_late_owes_nobody_a_reply() -> None:
    made = past()
    made.timeline = [Point(at_s=19.0, sent=0, outcomes={Outcome.REJECTED: 1}, p50_us=0, p99_us=0, max_us=0)]
    assert settled_after(made) == 0


def test_memory_of_a_process_that_was_seen_once_says_nothing() -> None:
    assert grown_most({"worker 1": [5]}).process == "none"


def test_options_that_cannot_be_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, why in ((["--over-time", "1"], "--over-time"), (["--warehouses", "0"], "warehouse")):
        assert main(["overload", *words]) == USAGE
        assert why in capsys.readouterr().err


@pytest.mark.slow
def test_a_real_deployment_is_put_past_its_limit_and_audited(tmp_path: Path) -> None:
    short = ["--window", "1", "--warm-up", "0.5", "--keys", "200", "--slots", "2", "--clients", "1"]
    # What it finds depends on the machine.
    status = main(["overload", *short, "--over-time", "2", "--workload", "zipf", "--out", str(tmp_path)])
    assert status in (OK, FAILED)
    report = json.loads((tmp_path / "overload.json").read_bytes())
    assert [(each["workload"], each["way"]) for each in report["found"]] == [("zipf", way) for way in WAYS]
    for each in report["found"]:
        found = msgspec.convert(each["findings"], list[Finding])
        # However late: everything was answered or refused, and the audit has agreed.
        assert "without a reply" not in wrong(found)
        assert each["highest"] > 0
    assert "audit" not in report["failed"]

"""What stands below a chart: facts of the results, once where they agree, and short enough for a line."""

from __future__ import annotations

import msgspec

from benchmarks.driver.chart_facts import LINE_CHARS, facts
from benchmarks.driver.result import Result, SearchResult, Step
from benchmarks.driver.workload import Audit
from tests.benchmarks.driver.made import ENVIRONMENT, result


def changed(**changes: object) -> Result:
    return msgspec.structs.replace(result(), **changes)


def test_one_run() -> None:
    made = changed(settings={"keys": 20, "hot": 0, "partitions": None, "wait": True, "zipf_exponent": 0.9})
    assert facts([made]) == [
        "abacus, 2 processors, 1.0 GiB",
        "Linux 0, Snake 9.9",
        "cluster, workers 1",
        "counting: keys 20, wait, zipf exponent 0.9",
        "1 client process, even arrivals, 10 s after 3 s of warm-up; 2025-06-22; not audited",
    ]


def test_where_results_differ_each_is_told() -> None:
    one = changed(audit=Audit([], []))
    elsewhere = msgspec.structs.replace(ENVIRONMENT, processor="slide rule", taken_at="")
    other = changed(
        deployment={"kind": "cluster", "workers": 2}, environment=elsewhere, audit=Audit([], ["one is missing"])
    )
    assert facts([one, other, one]) == [
        "abacus, 2 processors, 1.0 GiB | slide rule, 2 processors, 1.0 GiB",
        "Linux 0, Snake 9.9",
        "cluster, workers 1 | cluster, workers 2",
        "counting: keys 20",
        "1 client process, even arrivals, 10 s after 3 s of warm-up; 2025-06-22 | no date; audit passed | audit FAILED",
    ]


def test_a_sweep_has_the_facts_of_its_steps() -> None:
    swept = SearchResult(
        workload="counting",
        settings={"keys": 20},
        deployment={"kind": "embedded"},
        bound_s=1.0,
        rate=200,
        ended="",
        steps=[Step(rate=rate, reasons=[], result=result(rate)) for rate in (100, 200)],
        audit=Audit([], []),
    )
    assert facts([swept])[2:] == [
        "embedded",
        "counting: keys 20",
        "1 client process, even arrivals, 10 s after 3 s of warm-up; 2025-06-22; audit passed",
    ]


def test_long_lines_are_wrapped() -> None:
    lines = facts([changed(settings={f"setting_{number}": number for number in range(1, 40)})])
    assert len(lines) > 8
    assert max(map(len, lines)) <= LINE_CHARS

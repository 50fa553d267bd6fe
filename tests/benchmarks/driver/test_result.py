"""A result: what it is made of, that it survives its file, and what people are told of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.driver.latency import decode
from benchmarks.driver.reports import IntervalReport, RunReport
from benchmarks.driver.result import SearchResult, Step, read, write
from benchmarks.driver.summary import search_summary, summary, warnings
from benchmarks.driver.target import Outcome
from benchmarks.driver.workload import Audit
from styx.errors import ConfigurationError
from tests.benchmarks.driver.made import result


def test_rates_and_processor_time_are_by_transaction() -> None:
    made = result(rate=100)
    assert (made.offered_rate, made.throughput, made.committed_rate) == (100, 100, 100)
    assert made.cpu_us == {"worker": pytest.approx(5000)}
    assert made.roles["worker"].cores == pytest.approx(0.5)
    assert made.machine.others_s == pytest.approx(2.0)
    assert made.peer == {"messages": 2.5}
    assert made.calls == 3
    assert "3.00 functions per transaction" in summary(made)
    assert made.timeline[0].at_s == 0.0
    assert made.answered.p99_us == made.latency["add"][Outcome.COMMITTED].p99_us
    assert sum(decode(made.answered.hdr).values()) == made.answered.count == 1000


def test_aborts_by_the_workload_are_transactions_and_failures_are_not() -> None:
    replied = {Outcome.COMMITTED: 700, Outcome.ABORTED: 100, Outcome.REJECTED: 200}
    made = result(rate=100, replied=replied)
    assert (made.throughput, made.committed_rate) == (80, 70)


def test_a_file_gives_back_the_result(tmp_path: Path) -> None:
    made = result()
    made.audit = Audit(["all of it"], [])
    write(tmp_path / "run.json", made)
    assert read(tmp_path / "run.json") == made
    found = SearchResult(
        workload="counting",
        settings={},
        deployment={},
        bound_s=1.0,
        rate=100,
        ended="enough",
        steps=[Step(rate=100, reasons=[], result=made)],
        audit=Audit([], ["one is missing"]),
    )
    write(tmp_path / "search.json", found)
    assert read(tmp_path / "search.json") == found


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="no result"):
        read(tmp_path / "no.json")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read(tmp_path / "none.json")


def test_people_are_told_what_makes_figures_worthless() -> None:
    assert warnings(result()) == []
    bad = result(
        shed=7, gave_up="too much", outcomes={Outcome.MISSED: 3, Outcome.REJECTED: 2}, late={50_000: 5}, outside={}
    )
    bad.duplicated = 1
    text = summary(bad)
    for word in (
        "OVERLOADED: 7",
        "given up: too much",
        "3 requests had no reply",
        "1 replies came twice",
        "2 requests",
    ):
        assert word in text
    assert "clients themselves were late" in text
    assert bad.overloaded
    assert not result().overloaded


def test_a_run_that_was_given_up_has_the_rates_of_the_time_that_it_lasted() -> None:
    # 1,000 requests were due, and answered, in the first 4 s of the window.
    early = result(gave_up="hopeless", window_s=4.0)
    assert (early.window_s, early.offered_rate, early.throughput, early.committed_rate) == (4.0, 250, 250, 250)
    assert early.cpu_us["worker"] == early.roles["worker"].cores / 250 * 1e6
    before = result(gave_up="hopeless", window_s=0.0)
    assert (before.offered_rate, before.throughput, before.cpu_us) == (0, 0, {})


def test_a_result_says_when_its_window_was() -> None:
    assert (result().window_from, result().window_to) == (
        "2025-06-22T12:35:00.250+00:00",
        "2025-06-22T12:35:10.250+00:00",
    )


def test_people_are_told_of_a_slow_phase_of_the_machine() -> None:
    made = result()
    made.best_ms = 25.0
    (told,) = warnings(made)
    assert told == "the machine was in a slow phase: the fixed work took 1.60 times its best time here, 25.0 ms"
    made.best_ms = 40.0
    # The made result: 2 s of 2 processors' 10 s were others'.
    made.machine = msgspec.structs.replace(made.machine, others_s=5.0)
    assert warnings(made) == ["other processes and the hypervisor had 25% of the processors"]


def test_an_audits_verdict_is_told() -> None:
    made = result()
    made.audit = Audit(["20 counters"], ["one is missing"])
    assert "VIOLATION    one is missing" in summary(made)
    assert "FAILED" in summary(made)


def test_a_search_is_told_step_by_step() -> None:
    steps = [
        Step(rate=100, reasons=[], result=result()),
        Step(rate=200, reasons=["p99 2.00 s"], result=result(rate=200, latency_us=2_000_000)),
    ]
    found = SearchResult(
        workload="w", settings={}, deployment={}, bound_s=1.0, rate=100, ended="200/s is too much", steps=steps
    )
    text = search_summary(found)
    assert "p99 2.00 s" in text
    assert "100 requests/s (200/s is too much)" in text


def test_reports_of_clients_add_up() -> None:
    interval = IntervalReport(sent=1, outcomes={Outcome.COMMITTED: 1}, latency={1000: 1})
    one = RunReport(
        due=2,
        sent=1,
        shed=1,
        outcomes={Outcome.COMMITTED: 1},
        errors={"a": 1},
        latency={"add": {Outcome.COMMITTED: {1000: 1}}},
        intervals={0: interval},
    )
    other = RunReport(
        due=5,
        sent=5,
        outcomes={Outcome.COMMITTED: 2, Outcome.MISSED: 3},
        outside={Outcome.COMMITTED: 1},
        latency={"add": {Outcome.COMMITTED: {1000: 1, 7: 1}}, "read": {Outcome.MISSED: {9: 3}}},
        late={3: 5},
        intervals={0: interval, 1: interval},
        gave_up="why",
    )
    merged = RunReport()
    merged.add(one)
    merged.add(other)
    assert (merged.due, merged.sent, merged.shed, merged.gave_up) == (7, 6, 1, "why")
    assert merged.outcomes == {Outcome.COMMITTED: 3, Outcome.MISSED: 3}
    assert merged.latency["add"][Outcome.COMMITTED] == {1000: 2, 7: 1}
    assert merged.latency["read"][Outcome.MISSED] == {9: 3}
    assert (merged.intervals[0].sent, merged.intervals[1].sent) == (2, 1)
    assert one.outcomes == {Outcome.COMMITTED: 1}, "the parts are not changed"

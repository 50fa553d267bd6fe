"""What experiments show of windows over time, and of a breakdown."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmarks.driver.interruption import Interruption
from benchmarks.driver.probe import Mark
from benchmarks.driver.worker_death import KILLED, REPLACED, TOOK_OVER
from benchmarks.experiments import breakdown, recovery, snapshots
from benchmarks.experiments.bench import StepFailed
from benchmarks.experiments.report import Shown
from tests.benchmarks.driver.made import result
from tests.benchmarks.driver.test_interruption import NORMAL_US, line


def drawn(shown: Shown, chart: str, tmp_path: Path) -> str:
    path = tmp_path / "chart.svg"
    shown.charts[chart](path)
    return path.read_text("utf-8")


def saturated(what: str, throughput: float) -> snapshots.Measured:
    return snapshots.Measured(
        what=what, rate=0, throughput=throughput, snapshots=3, p50_us=1000, p99_us=2000, max_us=3000
    )


def test_snapshots_by_none_and_over_time(tmp_path: Path) -> None:
    throughputs = [(snapshots.WITH, 970.0), (snapshots.WITHOUT, 1000.0), (snapshots.WITHOUT, 1000.0)]
    found = [saturated(*each) for each in [*throughputs, (snapshots.WITH, 990.0)]]
    marks = [Mark(at_s=0.5, what="snapshot"), Mark(at_s=1.5, what="snapshot")]
    changes = {"rate": 500.0, "timeline": line([NORMAL_US] * 20), "marks": marks}
    found.append(msgspec.structs.replace(saturated(snapshots.WITH, 500), **changes))
    shown = snapshots.show(found)
    assert shown.text.endswith("with snapshots, 98.0% of the throughput without (97.0%-99.0%)")
    assert set(shown.charts) == {"snapshots", "snapshots-rate"}
    assert "snapshot" in drawn(shown, "snapshots", tmp_path)
    assert "run 2" in drawn(shown, "snapshots-rate", tmp_path)


def test_snapshots_of_a_run_that_failed_at_once() -> None:
    shown = snapshots.show([saturated(snapshots.WITH, 970.0)])
    assert "970" in shown.text
    assert not shown.charts


def made_recovery(pause_s: float | None) -> recovery.Measured:
    return recovery.Measured(
        rate=2000,
        normal_us=NORMAL_US,
        death=Interruption(pause_s=pause_s, worst_us=900_000, back_s=2.0),
        replacement=None,
        timeline=line([NORMAL_US] * 20),
        marks=[Mark(at_s=1.0, what=f"killed, then {pause_s}")],
    )


def test_recovery_shows_the_run_with_the_median_pause(tmp_path: Path) -> None:
    shown = recovery.show([made_recovery(pause_s) for pause_s in (0.9, 0.5, 0.7)])
    assert shown.text.endswith("after a death no reply for 0.7 s (0.5-0.9), at 2000 requests/s")
    assert "never did" in shown.text
    assert "killed, then 0.7" in drawn(shown, "recovery", tmp_path)
    assert "no reply came" in recovery.show([made_recovery(None)]).text


def test_deaths_are_found_in_a_run() -> None:
    made = result()
    made.timeline = line([NORMAL_US] * 10 + [0] * 5 + [90_000] * 3 + [NORMAL_US] * 30)
    made.marks = [Mark(at_s=0.95, what=KILLED), Mark(at_s=3.0, what=REPLACED)]
    found = recovery.measured(made, 100, 5.0)
    assert found.death.pause_s == pytest.approx(0.5)
    assert (found.normal_us, found.replacement) == (NORMAL_US, None)
    made.marks.append(Mark(at_s=3.5, what=TOOK_OVER))
    joined = recovery.measured(made, 100, 5.0).replacement
    assert joined is not None
    assert joined.pause_s == 0
    made.marks = []
    with pytest.raises(StepFailed, match="before a worker was killed"):
        recovery.measured(made, 100, 5.0)


def test_a_breakdown_is_by_transaction(tmp_path: Path) -> None:
    made = result()
    made.counters = {
        "worker": {
            "styx_sampled_transactions_total": 200.0,
            "styx_sampled_seconds_total{part=function}": 0.001,
            "styx_sampled_seconds_total{part=idle}": 0.003,
            "styx_transactions_total{outcome=committed}": 900.0,
            "styx_transactions_total{outcome=aborted}": 100.0,
            "styx_epoch_step_seconds_sum{step=execution}": 0.03,
            "styx_epoch_step_seconds_count{step=execution}": 10.0,
            "styx_epoch_step_seconds_sum{step=replies}": 0.01,
            "styx_epoch_transactions_sum": 1000.0,
            "styx_epoch_transactions_count": 50.0,
        }
    }
    found = breakdown.measured("much", made)
    assert (found.parts_us["function"], found.parts_us["idle"], found.parts_us["state"]) == (5, 15, 0)
    assert found.steps_us["execution"] == pytest.approx(30)
    assert found.steps_us["replies"] == pytest.approx(10)
    assert (found.epoch_size, found.sampled) == (20, 200)
    shown = breakdown.show([found, msgspec.structs.replace(found, load="more")])
    assert "5.0 (25 %)" in shown.text
    assert "30.0 (75 %)" in shown.text
    assert "more" in drawn(shown, "breakdown", tmp_path)
    assert "lock phase" in drawn(shown, "breakdown-steps", tmp_path)


def test_a_breakdown_of_nothing() -> None:
    with pytest.raises(StepFailed, match="much: no transaction"):
        breakdown.measured("much", result())

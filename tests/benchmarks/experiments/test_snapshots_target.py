"""The row of the snapshots: both on one worker, in turns, each piece with the snapshots it is to have; on a cluster
that is not there, and once on a real one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from benchmarks.driver.accompanied import Company
from benchmarks.driver.clients import Clients
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.result import Result
from benchmarks.experiments.__main__ import main
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.place import NEVER_SECONDS
from benchmarks.experiments.settings import Common
from benchmarks.experiments.subject import Load, Subject
from benchmarks.experiments.switched_coordinator import AGAIN, NONE
from benchmarks.experiments.targets import snapshots
from benchmarks.experiments.targets.declared import TARGETS
from benchmarks.experiments.targets.snapshots import INTERVAL_SECONDS, LONGER, PAIRS_MIN, as_many_as_meant
from benchmarks.experiments.targets.verdict import Verdict
from benchmarks.reference.line import FAILED, OK
from tests.benchmarks.experiments.pretended import Answers, subject_on

COORDINATOR = 4_711
WITHOUT = 10_000.0
WITH = 9_600.0


class Cluster(Answers):
    """Answers so many with snapshots and so many without, and is the session too; if it is `deaf`, it hears no signal,
    and takes its snapshots all the time.
    """

    def __init__(self, deaf: bool = False) -> None:
        super().__init__(WITH)
        self.deaf = deaf
        self.heard: list[int] = []

    def check(self) -> None:
        pass

    def pids(self) -> dict[str, list[int]]:
        return {"coordinator": [COORDINATOR]}

    def hear(self, pid: int, number: int) -> None:
        assert pid == COORDINATOR
        self.heard.append(number)
        if not self.deaf:
            self.capacity = WITH if number == AGAIN else WITHOUT

    async def measure(self, clients: Clients, plan: LoadPlan, company: Company | None = None) -> Result:
        made = await super().measure(clients, plan, company)
        taken = plan.duration_s if self.capacity == WITH else 0.0
        return msgspec.structs.replace(made, counters={"coordinator": {"styx_snapshots_total": taken}})


def measured(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, **common: Any) -> tuple[Verdict, Bench]:
    bench, deployment = Bench(Common(**common)), SimpleNamespace(facts={})

    async def made(_name: str, _workers: int, **_: Any) -> Cluster:
        return cluster

    @asynccontextmanager
    async def place(_bench: Bench) -> AsyncIterator[Any]:
        yield SimpleNamespace(cluster=made)

    @asynccontextmanager
    async def subjects(_bench: Bench, of: Any, loads: Sequence[Load], **_: Any) -> AsyncIterator[list[Subject]]:
        assert of is deployment
        yield [subject_on(bench, load.name, cluster) for load in loads]

    monkeypatch.setattr(snapshots, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(snapshots, "os", SimpleNamespace(kill=cluster.hear))
    monkeypatch.setattr(snapshots, "place", place)
    monkeypatch.setattr(snapshots, "subjects", subjects)
    monkeypatch.setattr(snapshots, "deployment_of", lambda _: deployment)
    verdict = Verdict(next(target for target in TARGETS if target.name == "snapshots"))
    asyncio.run(snapshots.measure(bench, {"snapshots": verdict}, 1000))
    return verdict, bench


def test_pieces_take_turns_on_one_cluster_each_behind_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    verdict, bench = measured(cluster, monkeypatch, runs=1)
    assert cluster.heard == [AGAIN, AGAIN, NONE, AGAIN, NONE, AGAIN] * (PAIRS_MIN // 2)
    assert [run.value for run in verdict.runs] == [WITH / WITHOUT] * PAIRS_MIN
    assert verdict.holds
    pieces = cluster.plans[-2 * PAIRS_MIN :]
    assert len({plan.in_flight_max for plan in pieces}) == 1
    assert {(plan.duration_s, plan.warm_up_s) for plan in pieces} == {
        (LONGER * bench.common.window_s, LONGER * bench.common.warm_up_s)
    }
    assert [step.subject for step in bench.steps[-3:]] == ["without snapshots", "without snapshots", "with snapshots"]


def test_more_runs_are_more_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, _ = measured(Cluster(), monkeypatch, runs=3)
    assert len(verdict.runs) == 3 * snapshots.TIMES


def test_with_snapshots_that_it_is_not_to_have_a_piece_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict, _ = measured(Cluster(deaf=True), monkeypatch)
    assert verdict.failed == "without snapshots: 8 were completed in 8 s"
    assert not verdict.holds


@pytest.mark.parametrize(
    ("taken", "seconds", "interval_s", "meant"),
    [
        (8, 8, 1, True),
        (6, 8, 1, True),
        (5, 8, 1, False),
        (9, 8, 1, True),
        (10, 8, 1, False),
        (0, 1, 1, False),
        (0, 8, NEVER_SECONDS, True),
        (1, 8, NEVER_SECONDS, False),
    ],
)
def test_about_one_for_each_interval(taken: int, seconds: float, interval_s: float, meant: bool) -> None:
    assert as_many_as_meant(taken, seconds, interval_s) is meant


@pytest.mark.slow
def test_on_real_services_a_signal_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "PAIRS_MIN", 1)
    monkeypatch.setattr(snapshots, "TIMES", 1)
    words = ["--only", "snapshots", "--many-keys", "1000", "--runs", "1", "--repeats", "0", "--window", "1"]
    assert main(["targets", *words, "--warm-up", "0.2", "--slots", "2", "--out", str(tmp_path)]) in (OK, FAILED)
    report = json.loads((tmp_path / "targets.json").read_text("utf-8"))
    (target,) = report["targets"]
    # A machine that is busy with other things may not even take as many snapshots as it is to.
    assert len(target["runs"]) == 1 or target["failed"].startswith("with snapshots: ")
    intervals = [step["result"]["deployment"]["snapshot interval s"] for step in report["steps"]]
    assert intervals[-2:] == [INTERVAL_SECONDS, NEVER_SECONDS] or target["failed"]

"""The row of eight workers and the line below it: in the same turns, at one rate, with epochs of one size. On clusters
that are not there.
"""

from __future__ import annotations

import asyncio
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
from benchmarks.experiments import spaced_worker
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.settings import Common
from benchmarks.experiments.subject import Load, Subject
from benchmarks.experiments.targets import crossing, eight_workers, workers
from benchmarks.experiments.targets.compare import LOWER
from benchmarks.experiments.targets.declared import TARGETS
from benchmarks.experiments.targets.eight_workers import LINE, ROW
from benchmarks.experiments.targets.pipeline import TOP_SHARE
from benchmarks.experiments.targets.verdict import Verdict
from styx.cluster.worker.arrival_gate import INTERVAL_SECONDS_MAX
from tests.benchmarks.experiments.pretended import Answers, subject_on

US = {"8-workers": 45.0, "4 clusters of 2": 42.0, "2-workers": 30.0}
EPOCHS_PER_SECOND = 100.0
"""Of each of the two workers."""


class Busy(Answers):
    """Workers that need so many microseconds a transaction; it refuses the first `refused` requests for a window at a
    rate that is not the saturating one.
    """

    def __init__(self, us: float, capacity: float, refused: int = 0) -> None:
        super().__init__(capacity)
        self._us = us
        self._refused = refused

    async def measure(self, clients: Clients, plan: LoadPlan, company: Company | None = None) -> Result:
        made = await super().measure(clients, plan, company)
        if plan.rate < self.capacity and self._refused:
            self._refused -= 1
            made = msgspec.structs.replace(made, throughput=0.0)
        role = msgspec.structs.replace(made.roles["worker"], processes=2)
        return msgspec.structs.replace(
            made,
            cpu_us={"worker": self._us},
            roles={"worker": role},
            counters={"worker": {"styx_epochs_total": 2 * EPOCHS_PER_SECOND * plan.duration_s}},
        )


class Pretended:
    """What was started, and how much it holds."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, directory: Path, capacities: dict[str, float], refused: int = 0
    ) -> None:
        self.started: list[tuple[str, int]] = []
        self.directory = directory
        self.loads: list[Load] = []
        self._capacities = capacities
        self._refused = refused

        @asynccontextmanager
        async def place(_bench: Bench) -> AsyncIterator[Any]:
            yield SimpleNamespace(cluster=self._cluster)

        monkeypatch.setattr(workers, "place", place)
        for module in (crossing, eight_workers):
            monkeypatch.setattr(module, "subjects", self._subjects)
            monkeypatch.setattr(module, "deployment_of", lambda cluster: cluster)
        monkeypatch.setattr(eight_workers, "spread_over", lambda _: None)

    async def _cluster(self, name: str, workers: int, **options: Any) -> Any:
        assert options["slots"] == workers
        own = self.directory / name
        own.mkdir()
        if "worker_module" in options:
            assert options["worker_module"] == spaced_worker.MODULE
            (own / spaced_worker.FILE).write_text("own")
        self.started.append((name, workers))
        return SimpleNamespace(check=lambda: None, options=SimpleNamespace(directory=own))

    @asynccontextmanager
    async def _subjects(
        self, bench: Bench, _deployment: Any, loads: Sequence[Load], **_: Any
    ) -> AsyncIterator[list[Subject]]:
        (load,) = loads
        self.loads.append(load)
        refused = self._refused if load.name == "8-workers" else 0
        yield [subject_on(bench, load.name, Busy(US[load.name], self._capacities.get(load.name, 10_000.0), refused))]


def measured(names: Sequence[str], **common: Any) -> tuple[dict[str, Verdict], Bench]:
    bench = Bench(Common(repeats=0, **common))
    verdicts = {target.name: Verdict(target) for target in TARGETS if target.name in names}
    asyncio.run(workers.measure(bench, verdicts, 1000))
    return verdicts, bench


def test_both_are_measured_in_the_same_turns_at_the_rate_of_the_slowest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Pretended(monkeypatch, tmp_path, {"8-workers": 8_000.0, "4 clusters of 2": 7_000.0})
    verdicts, bench = measured([ROW, LINE], runs=2)
    assert [run.value for run in verdicts[ROW].runs] == [1.5, 1.5]
    assert [run.value for run in verdicts[LINE].runs] == [1.4, 1.4]
    assert (verdicts[ROW].failed, verdicts[LINE].failed) == ("", "")
    turns = [(step.subject, step.result.plan.rate) for step in bench.steps[-6:]]
    rate = TOP_SHARE * 7_000
    one = [("8-workers", rate), ("4 clusters of 2", rate), ("2-workers", rate)]
    assert turns == [*one, *reversed(one)]
    assert len({(load.settings.keys, step.result.plan.clients) for load in there.loads for step in bench.steps}) == 1


def test_the_epochs_of_four_clusters_are_made_as_large_as_those_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Pretended(monkeypatch, tmp_path, {})
    measured([LINE], runs=1)
    names = [f"2-workers-{number}" for number in range(1, 5)]
    assert there.started == [("2-workers", 2), ("8-workers", 8), *((name, 2) for name in names)]
    for name in names:
        # In every window they hold a quarter of the one's, so they are to be four times as far apart in the next.
        seconds = float((tmp_path / name / spaced_worker.FILE).read_text())
        assert seconds == pytest.approx(INTERVAL_SECONDS_MAX * 4 ** (eight_workers.PACING_STEPS + 1))
    assert not (tmp_path / "2-workers" / spaced_worker.FILE).exists()
    assert [load.clusters for load in there.loads] == [1, 1, 4]


def test_the_row_alone_needs_none_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Pretended(monkeypatch, tmp_path, {})
    verdicts, _ = measured([ROW], runs=1)
    assert verdicts[ROW].measured == 1.5
    assert [name for name, _ in there.started] == ["2-workers", "8-workers"]


def test_a_rate_that_one_does_not_hold_is_lowered_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Pretended(monkeypatch, tmp_path, {}, refused=1)
    verdicts, bench = measured([ROW, LINE], runs=1)
    assert all(len(verdict.runs) == 1 and not verdict.failed for verdict in verdicts.values())
    assert {step.result.plan.rate for step in bench.steps[-3:]} == {TOP_SHARE * 10_000 * LOWER}

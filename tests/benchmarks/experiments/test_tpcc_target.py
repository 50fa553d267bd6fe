"""The rows of TPC-C: which data each needs, and what it is, on deployments that are not there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.experiments.__main__ import main
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.subject import Subject
from benchmarks.experiments.targets import tpcc
from benchmarks.experiments.workload_table import DataSet, Kind
from benchmarks.reference.line import FAILED, OK
from tests.benchmarks.experiments.pretended import Answers, subject_on

CAPACITIES = {tpcc.ONE.name: 500.0, tpcc.TEN.name: 1_000.0, tpcc.HUNDRED.name: 2_000.0}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What clusters were started, and what kind was measured on which data."""
    started: list[str] = []

    class Cluster:
        async def end(self) -> None:
            started.append("ended")

    class Place:
        async def cluster(self, _name: str, workers: int, *, app: str) -> Cluster:
            assert (workers, app) == (1, "benchmarks.tpcc.app:app")
            return Cluster()

    @asynccontextmanager
    async def place(_bench: Bench) -> AsyncIterator[Place]:
        yield Place()

    @asynccontextmanager
    async def data_set_on(bench: Bench, _cluster: Any, data_set: DataSet, *_: Any) -> AsyncIterator[Any]:
        @asynccontextmanager
        async def opened(kind: Kind) -> AsyncIterator[Subject]:
            assert kind in data_set.kinds
            started.append(f"{data_set.name}: {kind.name}")
            yield subject_on(bench, kind.name, Answers(CAPACITIES[data_set.name]))

        yield opened

    monkeypatch.setattr(tpcc, "place", place)
    monkeypatch.setattr(tpcc, "data_set_on", data_set_on)
    return started


def test_each_row_has_the_data_that_it_needs(tmp_path: Path, started: list[str]) -> None:
    assert main(["targets", "--only", "tpcc", "--runs", "2", "--repeats", "0", "--out", str(tmp_path)]) == OK
    assert started == [
        "TPC-C, 1 warehouse: NewOrder and Payment",
        "TPC-C, 10 warehouses: NewOrder and Payment",
        "ended",
        "ended",
        "TPC-C, 100 warehouses: NewOrder",
        "ended",
        "TPC-C, 1 warehouse: NewOrder",
        "ended",
    ]
    rows = {row["name"]: row for row in json.loads((tmp_path / "targets.json").read_text("utf-8"))["targets"]}
    assert rows["tpcc-one-by-ten"]["measured"] == pytest.approx(0.5, rel=0.05)
    for name in ("tpcc-new-order", "tpcc-new-order-contended"):
        assert len(rows[name]["runs"]) == 2
        assert rows[name]["unit"] == "µs"


def test_a_row_alone_starts_its_own_cluster_only(tmp_path: Path, started: list[str]) -> None:
    words = ["targets", "--only", "tpcc-new-order-contended", "--runs", "1", "--repeats", "0", "--out", str(tmp_path)]
    assert main(words) == OK
    assert started == ["TPC-C, 1 warehouse: NewOrder", "ended"]


def test_a_warehouse_that_holds_less_than_a_quarter_is_told(
    tmp_path: Path, started: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CAPACITIES, tpcc.ONE.name, 200.0)
    words = ["targets", "--only", "tpcc-one-by-ten", "--runs", "1", "--repeats", "0", "--out", str(tmp_path)]
    assert main(words) == FAILED
    assert len(started) == 4

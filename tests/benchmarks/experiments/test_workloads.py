"""The experiment on kinds of transactions: its table, and its way through it on deployments that are not there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from benchmarks.experiments import workloads
from benchmarks.experiments.__main__ import main
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.subject import Subject
from benchmarks.experiments.workload_table import DATA_SETS, DataSet, Kind
from benchmarks.reference.line import FAILED, OK
from styx.errors import ConfigurationError
from tests.benchmarks.experiments.pretended import Answers, subject_on

CAPACITIES = {"slow": 100.0, "fast": 1000.0, "set": 30.0}
TABLE = [
    DataSet("some", "benchmarks.ycsbt", "--keys 10", (Kind("slow", ""), Kind("fast", "--wait"), Kind("set", "", 20)))
]


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Clusters that were ended, of those that were asked for."""
    ended: list[str] = []

    class Cluster:
        def __init__(self, name: str) -> None:
            self.name = name

        async def end(self) -> None:
            ended.append(self.name)

    class Place:
        async def cluster(self, name: str, workers: int, *, app: str) -> Any:
            assert app == "benchmarks.ycsbt.bank:app"
            return Cluster(name)

    @asynccontextmanager
    async def place(_bench: Bench) -> AsyncIterator[Place]:
        yield Place()

    @asynccontextmanager
    async def data_set_on(bench: Bench, *_: Any) -> AsyncIterator[workloads.Opened]:
        @asynccontextmanager
        async def opened(kind: Kind) -> AsyncIterator[Subject]:
            yield subject_on(bench, kind.name, Answers(CAPACITIES[kind.name]))

        yield opened

    monkeypatch.setattr(workloads, "place", place)
    monkeypatch.setattr(workloads, "data_set_on", data_set_on)
    monkeypatch.setattr(workloads, "DATA_SETS", TABLE)
    return ended


def test_each_kind_runs_at_a_moderate_rate(tmp_path: Path, ended: list[str]) -> None:
    assert main(["workloads", "--workers", "1,2", "--runs", "2", "--out", str(tmp_path)]) == OK
    found = json.loads((tmp_path / "workloads.json").read_text("utf-8"))["found"]
    assert [(each["kind"], each["workers"], each["rate"]) for each in found] == [
        (kind, workers, rate) for workers in (1, 2) for kind, rate in (("slow", 50), ("fast", 500), ("set", 20))
    ]
    assert found[0]["calls"] == [3.0, 3.0]
    assert found[0]["messages"] == [2.5, 2.5]
    assert ended == ["workloads-0-1", "workloads-0-2"]
    row = (tmp_path / "workloads.txt").read_text("utf-8").splitlines()[2].split()
    assert row == ["some", "slow", "1", "50", "0.0%", "3.00", "2.50", *row[7:9], "5.0", "5.0"]


@pytest.mark.parametrize(("capacity", "status", "last"), [(10.0, OK, 9.8), (5.0, FAILED, 9.8), (14.0, OK, 14.0)])
def test_a_rate_that_is_not_held_is_lowered_and_given_up_in_the_end(
    capacity: float, status: int, last: float, tmp_path: Path, ended: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CAPACITIES, "set", capacity)
    assert main(["workloads", "--runs", "1", "--repeats", "0", "--out", str(tmp_path)]) == status
    report = json.loads((tmp_path / "workloads.json").read_text("utf-8"))
    assert [each["kind"] for each in report["found"]] == ["slow", "fast", "set"][: 2 + (status == OK)]
    tried = [step["result"]["plan"]["rate"] for step in report["steps"] if step["subject"] == "set"]
    assert (tried[0], tried[-1]) == (20.0, last)


def test_data_sets_are_chosen_by_a_word() -> None:
    assert [each.name for each in workloads.chosen("tpc")] == ["TPC-C, 1 warehouse", "TPC-C, 10 warehouses"]
    assert workloads.chosen("") == list(DATA_SETS)
    with pytest.raises(ConfigurationError, match="YCSB-T; TPC-C, 1 warehouse"):
        workloads.chosen("nothing")


@pytest.mark.parametrize(
    ("data_set", "kind"),
    [pytest.param(each, kind, id=f"{each.name} {kind.name}") for each in DATA_SETS for kind in each.kinds],
)
def test_each_line_of_the_table_makes_requests_of_one_kind(data_set: DataSet, kind: Kind) -> None:
    module = import_module(f"{data_set.package}.options")
    options = workloads.options_of(module, data_set, kind, workers=1, slots=4)
    generator = module.make_workload(options).generator(0, 1, 1)
    assert len({generator.next().kind for _ in range(300)}) == 1

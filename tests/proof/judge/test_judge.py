"""adya on real engines: a right one, one that loses power, and broken ones, which it must catch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import pytest

from proof.judge import adya
from proof.judge.__main__ import judge, main
from proof.judge.app import app
from proof.judge.claimed_order import problems
from proof.judge.record import record
from proof.judge.recorded import Recorded, Recorder
from proof.judge.workload import MODELS, Model, Workload
from styx.client.base import Client
from styx.client.embedded import embedded
from styx.testing.fixture import embedded_cluster
from styx.worker.slot import Slot
from tests.plain_form import plain_form

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("judge"), pytest.mark.parametrize("model", MODELS)]


async def recorded_from(client: Client, model: Model, folder: Path, transactions: int = 2_000) -> Recorded:
    recorded = await record([client], Workload(model, 6, seed=1), processes=20, transactions=transactions)
    recorded.save(folder)
    return recorded


async def recorded_from_an_engine(model: Model, folder: Path) -> Recorded:
    async with embedded(app) as client:
        return await recorded_from(client, model, folder)


def test_an_engine_is_strictly_serializable_in_the_order_that_it_claims(model: Model, tmp_path: Path) -> None:
    recorded = asyncio.run(recorded_from_an_engine(model, tmp_path))
    assert recorded.count("ok") > 1_500
    assert recorded.count("fail") > 30
    verdict = adya.check(recorded, tmp_path)
    assert (verdict.valid, verdict.anomalies) == (True, {})
    assert problems(recorded) == []


def test_it_stays_so_when_power_is_lost_again_and_again(model: Model, tmp_path: Path) -> None:
    async def run() -> Recorded:
        async with embedded_cluster(app, tmp_path / "data") as cluster:
            recording = asyncio.create_task(recorded_from(cluster, model, tmp_path, transactions=4_000))
            for _ in range(5):
                await asyncio.sleep(0.2)
                await cluster.crash_and_recover()
            return await recording

    recorded = asyncio.run(run())
    assert recorded.count("info") == 0
    verdict = adya.check(recorded, tmp_path)
    assert (verdict.valid, verdict.anomalies) == (True, {})
    assert problems(recorded) == []


def no_conflicts(slot: Slot, gone: Container[int]) -> list[int]:
    return []


def conflicts_between_writes_only(slot: Slot, gone: Container[int]) -> list[int]:
    """What makes an engine snapshot isolated: two transactions may each read what the other writes."""
    written: set[object] = set()
    found = []
    for tid in sorted(slot.footprints):
        writes = {
            (o, c.key) for o, cells in slot.cells_by_operator() for c in cells if c.footprint.tid == tid and c.written
        }
        if tid not in gone:
            found += [] if written.isdisjoint(writes) else [tid]
            written |= writes
    return found


@plain_form
@pytest.mark.parametrize("conflicts", [no_conflicts, conflicts_between_writes_only])
def test_an_engine_that_overlooks_conflicts_is_caught(
    model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    conflicts: Callable[[Slot, Container[int]], list[int]],
) -> None:
    monkeypatch.setattr("styx.worker.validation.conflicts", conflicts)
    recorded = asyncio.run(recorded_from_an_engine(model, tmp_path))
    verdict = adya.check(recorded, tmp_path)
    assert verdict.valid is False
    assert verdict.anomalies
    assert problems(recorded)
    assert judge(recorded, tmp_path) == 1


@pytest.mark.parametrize("foreign", [["w", 0, 1], ["append", 0, 1], ["r", 0, [1]], ["r", 0, 1]])
def test_a_history_that_adya_cannot_read_is_not_called_valid(model: Model, tmp_path: Path, foreign: list[Any]) -> None:
    recorder = Recorder(model)
    write = "append" if model == "list-append" else "w"
    for place in (1, 2):
        # Where the foreign step is one of this model, its value is there twice.
        value = [[write, 0, 1], ["r", 1, None], foreign]
        recorder.begin(0, value)
        recorder.commit(0, value, (1, 1, place))
    recorder.recorded().save(tmp_path)
    assert adya.check(recorder.recorded(), tmp_path).valid is False


def test_the_command_records_and_judges_and_judges_again(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = ["--transactions", "300", "--processes", "8"]
    assert main(["run", "--model", model, *sizes, "--out", str(tmp_path)]) == 0
    assert main(["check", str(tmp_path)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert first.startswith(f"{model}: ")
    assert " 0 info; " in first
    assert first.endswith(" in phase 3: strictly serializable; 0 problems with the claimed order")

"""A worker whose epochs begin as far apart as it is told."""

from __future__ import annotations

import asyncio
import runpy
import sys
from pathlib import Path

import pytest

from benchmarks.experiments import spaced_worker
from benchmarks.experiments.spaced_worker import SpacedGate, space
from styx.cluster.worker import generation
from styx.cluster.worker.arrival_gate import INTERVAL_SECONDS_MAX, ArrivalGate
from styx.log.base import Record

SECONDS = 10 * INTERVAL_SECONDS_MAX


def test_requests_wait_as_long_as_the_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def pauses() -> list[float]:
        gate = SpacedGate(0, 8, lambda _: None)
        # Enough of them to be held back.
        found = []
        for seconds in (None, SECONDS, 2 * SECONDS):
            if seconds is not None:
                space(tmp_path, seconds)
            for _ in range(2):
                gate.arrive({0: [Record(number, 0, b"") for number in range(1000)]})
                await asyncio.sleep(0.001)
                gate.epoch_began()
            found.append(gate.fetch_pause_s())
        return found

    own, spaced, later = asyncio.run(pauses())
    assert own <= INTERVAL_SECONDS_MAX < SECONDS / 2 < spaced <= SECONDS < later


def test_the_module_runs_the_command_line_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(generation), "ArrivalGate", ArrivalGate)  # and puts it back
    monkeypatch.setattr(sys, "argv", ["styx", "worker", "--help"])
    with pytest.raises(SystemExit):
        runpy.run_path(spaced_worker.__file__, run_name="__main__")
    assert vars(generation)["ArrivalGate"].__name__ == SpacedGate.__name__

"""Calls that wait outlive a restart of everything and a change of workers, and each is made once in the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proof.cluster.waiting_calls import cluster_options, run
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
CALLS = 2_050


def test_waiting_calls_through_a_restart_and_other_numbers_of_workers(kafka: RealKafka, tmp_path: Path) -> None:
    options = cluster_options(kafka.bootstrap, tmp_path, f"file://{tmp_path}/store", None)
    found = asyncio.run(run(options, CALLS, deliver=True, tell=print))
    assert [step.name for step in found.steps] == [
        "given",
        "in a snapshot",
        "restart of the coordinator and all workers",
        "from 2 to 3 workers",
        "from 3 to 2 workers",
    ]
    assert found.snapshot_bytes > CALLS * 50
    assert (found.lost, found.doubled, found.wrong) == (0, 0, 0)

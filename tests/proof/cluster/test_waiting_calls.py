"""Calls that wait outlive a restart of everything and a change of workers, and each is made once in the end; a cluster
that has only such calls begins no epoch.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proof.cluster import ClusterUnderTest, idle
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


def test_what_an_idle_cluster_costs(kafka: RealKafka, tmp_path: Path) -> None:
    async def main() -> idle.Idle:
        options = cluster_options(kafka.bootstrap, tmp_path, f"file://{tmp_path}/store", None)
        async with ClusterUnderTest(options) as cluster:
            return await idle.measure(cluster, CALLS, 3.0)

    found = asyncio.run(main())
    assert found.epochs == 0
    assert [name.partition("-")[2] for name in found.processor] == ["coordinator", "worker", "worker", "gateway"]
    assert all(used >= 0 for used in found.processor.values())

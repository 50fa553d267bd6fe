"""The small form of the run of events and time: one fault of each kind, two bursts, and the whole verdict."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from random import Random

import pytest

from proof.cluster import ClusterUnderTest
from proof.cluster.events_and_time import RunOptions, cluster_options, run
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow

FAULTS = ("worker", "clocks-forward", "coordinator", "clocks-while-workers-die", "kafka-stops", "store-frozen")
"""A broker that is killed can hide the end of a commit from readers of committed records: the long run has that."""
OPTIONS = RunOptions(seconds=30.0, burst=1_500, rate=40.0, bursts=2, snapshots_s=3.0, faults=FAULTS)


@pytest.fixture(scope="module")
def kafka(kafka_of_its_own: RealKafka) -> RealKafka:
    return kafka_of_its_own


def test_events_and_time_under_faults(kafka: RealKafka, minio: RealMinio, tmp_path: Path) -> None:
    name = f"timed-{secrets.token_hex(4)}"
    options = cluster_options(name, kafka.bootstrap, f"http://{minio.endpoint}", tmp_path)

    async def main() -> None:
        async with ClusterUnderTest(options) as cluster:
            found = await run(cluster, kafka, minio, OPTIONS, Random(name), print)
        print("\n".join(found.figures))
        assert found.problems == []
        counts = found.counts
        assert counts["read uncommitted"] == 0
        assert counts["made"] > 2 * OPTIONS.burst
        assert counts["due at one moment"] == OPTIONS.burst
        assert counts["snapshots"] >= 3
        assert counts["looks at a mark"] >= 10
        for what in ("dead", "withdrawn", "ticks", "ends of lives", "noted"):
            assert counts[what] > 0, what

    asyncio.run(main())

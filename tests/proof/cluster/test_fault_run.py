"""A cluster of real processes through every fault, under one load, and audited: no reply lost, doubled or wrong."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest, LoadOptions
from proof.cluster.faults import run_faults
from proof.cluster.scenarios import SCENARIOS
from tests.real_services import RealKafka, RealMinio

pytestmark = pytest.mark.slow

PLANNED = ["rolling-restart", "none-left"]
"""Of these nothing is replayed."""
RATE = 60.0
"""Requests a second: what two busy cores bear beside starting processes."""


@pytest.fixture(scope="module")
def kafka(kafka_of_its_own: RealKafka) -> RealKafka:
    return kafka_of_its_own


def test_every_fault(options: ClusterOptions, kafka: RealKafka, minio: RealMinio) -> None:
    async def run() -> None:
        async with ClusterUnderTest(options) as cluster:
            rng = Random(options.name)
            faults = [each for each in SCENARIOS if each not in PLANNED]
            found = await run_faults(cluster, kafka, minio, faults, rng, LoadOptions(rate=RATE))
            for struck in found.struck:
                print(f"{struck.fault:<24} {struck.silence_s:.2f} s without a reply")
            assert [struck.fault for struck in found.struck] == faults
            assert found.audit.history.committed > 1_000
            assert found.audit.history.aborted > 0
            assert found.audit.history.repetitions > 0
            assert all(found.phases)  # how many end in the lock phase depends on how busy the machine is

    asyncio.run(run())


@pytest.mark.parametrize(("workers", "auto"), [(2, False), (3, True)])
def test_a_rolling_restart_replays_nothing(
    options: ClusterOptions, kafka: RealKafka, minio: RealMinio, workers: int, auto: bool
) -> None:
    """Every worker and the coordinator one after the other, then all workers at once."""
    # On a busy machine a worker may be silent for seconds; taken for dead, it would have others replay.
    wanted = replace(options, workers=workers, auto=auto, silence_s=60.0)

    async def run() -> None:
        async with ClusterUnderTest(wanted) as cluster:
            found = await run_faults(cluster, kafka, minio, PLANNED, Random(options.name), LoadOptions(rate=RATE))
            assert [struck.fault for struck in found.struck] == PLANNED
            assert found.audit.history.committed > 300

    asyncio.run(run())

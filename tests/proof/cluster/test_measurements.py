"""What is measured on clusters of real processes can be measured; how fast it is decides no test."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest, LoadOptions, recovery_time, snapshot_cost
from proof.cluster.snapshot_cost import Cost, Turn

KEYS = 20_000


@pytest.mark.slow
def test_the_time_from_a_death_to_the_next_reply(options: ClusterOptions) -> None:
    async def run() -> None:
        async with ClusterUnderTest(replace(options, snapshot_interval_s=1.0)) as cluster:
            load = LoadOptions(rate=50.0, http=0.0)
            found = await recovery_time.measure(cluster, KEYS, 2, Random(options.name), load)
            assert [death.replaced for death in found.deaths] == [True, False]
            assert found.audit is not None
            assert found.audit.history.committed > KEYS / 1_000

    asyncio.run(run())


@pytest.mark.slow
def test_throughput_with_snapshots_and_without(options: ClusterOptions) -> None:
    async def run() -> None:
        async with ClusterUnderTest(replace(options, snapshot_interval_s=1.0)) as cluster:
            cost = await snapshot_cost.measure(cluster, KEYS, 1, 5.0, Random(options.name))
            assert [turn.snapshots for turn in cost.turns] == [True, False]
            assert cost.turns[0].completed > 0
            assert cost.turns[1].completed == 0
            assert all(turn.per_second > 0 for turn in cost.turns)

    asyncio.run(run())


def test_the_ratio_is_that_of_the_medians() -> None:
    turns = [
        Turn(True, 90.0, 1),
        Turn(False, 100.0, 0),
        Turn(False, 100.0, 0),
        Turn(True, 110.0, 1),
        Turn(True, 1.0, 1),
    ]
    assert Cost(turns).ratio == 0.9

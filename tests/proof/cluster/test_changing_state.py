"""A cluster of processes whose state is checked, refused and converted under load, with kills amid it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.changing_state import first_version, measure
from proof.cluster.halting_coordinator import MODULE

KEYS = 3_000


@pytest.mark.slow
def test_state_is_converted_once_whoever_is_killed(options: ClusterOptions) -> None:
    app = first_version(options.directory, options.name)

    async def run() -> None:
        async with ClusterUnderTest(replace(options, app=app, coordinator_module=MODULE)) as cluster:
            found = await measure(cluster, KEYS, 60.0, Random(options.name), watched_s=1.0, tell=print)
            assert found.requests > 0
            assert "]: missing required field 'cents'" in found.refused

    asyncio.run(run())

"""Strangers at a cluster's ports and in its requests topic are refused, told of once, and change nothing."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest, LoadOptions
from proof.cluster.strangers import try_strangers

pytestmark = pytest.mark.slow


def test_strangers_are_refused(options: ClusterOptions) -> None:
    async def run() -> None:
        async with ClusterUnderTest(options) as cluster:
            found = await try_strangers(cluster, Random(options.name), LoadOptions(rate=50.0, http=0.0))
            assert len(found.told) == 1 + options.workers
            assert found.audit.history.committed > 100

    asyncio.run(run())

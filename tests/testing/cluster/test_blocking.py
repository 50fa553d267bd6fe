"""Functions that hold up a worker of a real cluster: it is waited for, and those that never end are ended."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from styx.client.base import Client
from styx.messages import Reply
from styx.testing.cluster import ClusterOptions, ClusterUnderTest
from styx.testing.patience import PATIENCE_SECONDS

APP = "styx.testing.cluster.blocking_app:app"
TIMEOUT_S = 600.0


@asynccontextmanager
async def _started(cluster: ClusterUnderTest) -> AsyncIterator[Client]:
    await cluster.start()
    async with cluster.client() as client:
        yield client


def generation(cluster: ClusterUnderTest) -> int:
    with urllib.request.urlopen(f"{cluster.facts_url}/status", timeout=PATIENCE_SECONDS) as answer:
        return int(json.loads(answer.read())["generation"])


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [2.0, 8.0])
def test_a_worker_that_a_function_blocks_is_waited_for(options: ClusterOptions, seconds: float) -> None:
    async def main() -> None:
        wanted = replace(options, app=APP, function_seconds_max=60.0)
        async with ClusterUnderTest(wanted) as cluster, _started(cluster) as client:
            await client.call("counter", "a", "add", timeout=TIMEOUT_S)
            before = await asyncio.to_thread(generation, cluster)
            blocked = asyncio.ensure_future(client.call("counter", "a", "block", seconds, timeout=TIMEOUT_S))
            others = [client.call("counter", f"k{n}", "add", timeout=TIMEOUT_S) for n in range(20)]
            assert await blocked == 2
            assert await asyncio.gather(*others) == [1] * 20
            assert await asyncio.to_thread(generation, cluster) == before, "nobody was replaced"

    asyncio.run(main())


def _drawn(rng: Random, requests: int, endless: int) -> Iterator[tuple[str, str]]:
    functions = ["spin"] * (endless // 2) + ["spin_elsewhere"] * (endless - endless // 2)
    functions += ["add"] * (requests - endless)
    rng.shuffle(functions)
    return ((f"k{n}", function) for n, function in enumerate(functions))


@pytest.mark.slow
def test_a_thousand_requests_of_which_fifty_never_end(options: ClusterOptions) -> None:
    """Beside workers that are killed: the others are answered, the fifty end, and all of it is replayed alike."""
    requests, endless = 1_000, 50
    rng = Random(options.name)

    async def main() -> None:
        wanted = replace(options, app=APP, function_seconds_max=0.2)
        async with ClusterUnderTest(wanted) as cluster, _started(cluster) as client:
            drawn = list(_drawn(rng, requests, endless))
            kills = asyncio.ensure_future(_kill(cluster, rng, 4))
            replies: list[Reply] = []
            for start in range(0, requests, 100):
                chunk = [
                    client.submit("counter", key, function, timeout=TIMEOUT_S, idempotency_key=f"{key}-{function}")
                    for key, function in drawn[start : start + 100]
                ]
                replies += await asyncio.gather(*chunk)
            await kills
            kinds: dict[Any, int] = {}
            for (_, function), reply in zip(drawn, replies, strict=True):
                kind = reply.result if reply.error is None else reply.error.type
                assert kind == (1 if function == "add" else "FunctionTooLong"), (function, reply)
                kinds[kind] = kinds.get(kind, 0) + 1
            assert kinds == {1: requests - endless, "FunctionTooLong": endless}
            # Everything is replayed, on one worker: the recorded outcomes hold.
            cluster.workers_wanted = 1
            await cluster.scale(1)
            again = [
                await client.submit("counter", key, function, timeout=TIMEOUT_S, idempotency_key=f"{key}-{function}")
                for key, function in drawn[::25]
            ]
            assert [reply.error for reply in again] == [reply.error for reply in replies[::25]]

    asyncio.run(main())


async def _kill(cluster: ClusterUnderTest, rng: Random, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(2.0 + 2.0 * rng.random())
        place = rng.randrange(len(cluster.workers))
        worker = cluster.workers[place]
        if worker is not None:
            await worker.kill()
            await cluster.start_worker(place)

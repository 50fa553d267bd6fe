"""Functions that hold up a worker of a real cluster: it is waited for, and those that never end are ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.blocking import APP, block
from proof.cluster.replay import check_same, outcome, replay_elsewhere
from styx.client.base import Client
from styx.messages import Reply

TIMEOUT_S = 600.0


@asynccontextmanager
async def _started(cluster: ClusterUnderTest) -> AsyncIterator[Client]:
    await cluster.start()
    async with cluster.client() as client:
        yield client


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "limit_s"), [(15.0, 60.0), (15.0, 1.0)])
def test_a_worker_that_a_function_blocks_is_waited_for(options: ClusterOptions, seconds: float, limit_s: float) -> None:
    async def main() -> None:
        # Silent for three times as long as a worker may be, which is longer than a busy machine holds one up.
        wanted = replace(options, app=APP, function_seconds_max=limit_s, silence_s=5.0)
        async with ClusterUnderTest(wanted) as cluster, _started(cluster) as client:
            found = await block(cluster, client, seconds)
        assert found.generations == 0, "nobody was replaced"
        if seconds < limit_s:
            assert found.blocked.result == 2
        else:
            assert found.blocked.error is not None
            assert found.blocked.error.type == "FunctionTooLong"

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
            # The very log that is left, on other workers with an empty store: every reply, and the state.
            original = await outcome(cluster)
            for workers in (3, 1):
                check_same(original, await replay_elsewhere(cluster, workers))

    asyncio.run(main())


async def _kill(cluster: ClusterUnderTest, rng: Random, times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(2.0 + 2.0 * rng.random())
        place = rng.randrange(len(cluster.workers))
        worker = cluster.workers[place]
        if worker is not None:
            await worker.kill()
            await cluster.start_worker(place)

"""A real cluster with many calls that are due at once: all are made once, in turns with requests."""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.micro.agenda import DELAY, EACH
from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.skewed_worker import MODULE, set_clocks
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow
CALLS = 6_000


async def due_at_once(kafka: str, directory: Path, calls: int, restarts: bool) -> tuple[float, list[float]]:
    """Lets two workers make so many calls, which are due at once. Seconds until all were made, and the seconds of each
    request that was sent meanwhile. `restarts`: workers are killed first, so that the agenda is loaded again.
    """
    options = ClusterOptions(
        app="benchmarks.micro.agenda:app",
        name=f"many-{secrets.token_hex(4)}",
        kafka=kafka,
        store=f"file://{directory}/store",
        directory=directory,
        worker_module=MODULE,
        snapshot_interval_s=2.0,
    )
    async with ClusterUnderTest(options) as cluster:
        await cluster.start()
        async with cluster.client() as client:
            for first in range(0, calls // EACH, 20):
                given = range(first, min(first + 20, calls // EACH))
                await asyncio.gather(*[client.call("giver", n, "give", EACH, timeout=PATIENCE_SECONDS) for n in given])
            if restarts:
                await asyncio.sleep(options.snapshot_interval_s)
                for place in range(options.workers):
                    await cluster.replace_worker(place)
            await client.call("book", -1, "ask", timeout=PATIENCE_SECONDS)
            set_clocks(directory, DELAY + timedelta(minutes=1))
            begun = time.monotonic()
            asked: list[float] = []
            givers = list(range(calls // EACH))
            async with asyncio.timeout(PATIENCE_SECONDS):
                while givers:
                    sent = time.monotonic()
                    await client.call("book", -1 - len(asked) % 64, "ask", timeout=PATIENCE_SECONDS)
                    asked.append(time.monotonic() - sent)
                    if not await client.call("giver", givers[-1], "wrong", EACH, timeout=PATIENCE_SECONDS):
                        givers.pop()
            seconds = time.monotonic() - begun
            for number in range(calls // EACH):
                assert await client.call("giver", number, "wrong", EACH, timeout=PATIENCE_SECONDS) == 0
            return seconds, asked


def test_calls_that_are_due_at_once_are_made_once(kafka: RealKafka, tmp_path: Path) -> None:
    _, asked = asyncio.run(due_at_once(kafka.bootstrap, tmp_path, CALLS, restarts=True))
    assert asked

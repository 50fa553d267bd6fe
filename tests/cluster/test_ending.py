"""A worker of a real cluster that is told to end while a function holds it up; another one goes on behind it."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from styx.testing.cluster import ClusterOptions, ClusterUnderTest
from styx.testing.cluster.blocking import APP
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow


class Case(NamedTuple):
    """`signals` come one after the other; `status` is the worker's, and `outcome` what its request ends in at last."""

    function: str
    arguments: list[float]
    limit_s: float
    signals: list[signal.Signals]
    status: int
    outcome: object


CASES = {
    "within its limit": Case("block", [6.0], 60.0, [signal.SIGTERM], 0, 2),
    "endless": Case("spin", [], 3.0, [signal.SIGTERM], 0, "FunctionTooLong"),
    "in C code": Case("block", [20.0], 4.0, [signal.SIGTERM], 143, "FunctionTooLong"),
    "in C code that a signal wakes, over its limit": Case(
        "block", [100_000.0], 0.5, [signal.SIGTERM], 0, "FunctionTooLong"
    ),
    "told twice": Case("block", [12.0], 600.0, [signal.SIGTERM, signal.SIGINT], 130, 2),
}


async def until_said(log: Path, words: str) -> None:
    while words not in await asyncio.to_thread(log.read_text):  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_worker_told_to_end(kafka: RealKafka, tmp_path: Path, case: Case) -> None:
    async def main() -> None:
        name = f"ending-{secrets.token_hex(4)}"
        store = f"file://{tmp_path}/store"
        options = ClusterOptions(
            app=APP,
            name=name,
            kafka=kafka.bootstrap,
            store=store,
            directory=tmp_path,
            workers=1,
            function_seconds_max=case.limit_s,
        )
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            async with cluster.client() as client:
                assert await client.call("counter", "a", "add", timeout=PATIENCE_SECONDS) == 1
                waiting = asyncio.ensure_future(
                    client.submit("counter", "a", case.function, *case.arguments, timeout=PATIENCE_SECONDS)
                )
                (worker,) = cluster.workers
                assert worker is not None
                await until_said(worker.log, "has run for")
                for number in case.signals:
                    os.kill(worker.pid, number)
                    await asyncio.sleep(1.0)
                status = await asyncio.wait_for(worker._process.wait(), PATIENCE_SECONDS)
                assert status == case.status, worker.tail()
                cluster.workers[0] = None
                await cluster.start_worker(0)
                reply = await waiting
                assert (reply.result if reply.error is None else reply.error.type) == case.outcome
                total = 2 if isinstance(case.outcome, int) else 1
                assert await client.call("counter", "a", "add", timeout=PATIENCE_SECONDS) == total + 1

    asyncio.run(main())

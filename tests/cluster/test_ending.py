"""A worker of a real cluster that is told to end while a function holds it up; another one goes on behind it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import signal
from enum import Enum
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.blocking import APP
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow


class Freed(Enum):
    """When the lock is let go that the function `wait_for_lock` waits for."""

    TOLD = "once its worker waits for it"
    ENDED = "once its worker has ended"
    STUCK_AGAIN = "once it is over its limit on the next worker"


class Case(NamedTuple):
    """`status` is the worker's, and `outcome` what its request ends in at last; `again`: told to end twice."""

    function: str
    limit_s: float
    status: int
    outcome: object
    freed: Freed = Freed.ENDED
    again: bool = False


CASES = {
    "within its limit": Case("wait_for_lock", 600.0, 0, 2, Freed.TOLD),
    "endless": Case("spin", 3.0, 0, "FunctionTooLong"),
    "in C code": Case("wait_for_lock", 10.0, 143, "FunctionTooLong", Freed.STUCK_AGAIN),
    "in C code that a signal wakes, over its limit": Case("block", 0.5, 0, "FunctionTooLong"),
    "told twice": Case("wait_for_lock", 600.0, 130, 2, again=True),
}


async def until_said(log: Path, words: str) -> None:
    while words not in await asyncio.to_thread(log.read_text):  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_worker_told_to_end(kafka: RealKafka, tmp_path: Path, case: Case) -> None:
    held = tmp_path / "held"
    arguments: dict[str, list[Any]] = {"wait_for_lock": [str(held)], "block": [100_000.0], "spin": []}

    async def main(lock: IO[str]) -> None:
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
                    client.submit("counter", "a", case.function, *arguments[case.function], timeout=PATIENCE_SECONDS)
                )
                (worker,) = cluster.workers
                assert worker is not None
                await until_said(worker.log, "has run for")
                os.kill(worker.pid, signal.SIGTERM)
                if case.freed is Freed.TOLD or case.again:
                    await until_said(worker.log, "a second signal ends this process at once")
                if case.again:
                    os.kill(worker.pid, signal.SIGINT)
                if case.freed is Freed.TOLD:
                    fcntl.flock(lock, fcntl.LOCK_UN)
                status = await asyncio.wait_for(worker._process.wait(), PATIENCE_SECONDS)
                assert status == case.status, worker.tail()
                cluster.workers[0] = None
                await cluster.start_worker(0)
                if case.freed is Freed.STUCK_AGAIN:
                    (worker,) = cluster.workers
                    assert worker is not None
                    await until_said(worker.log, "It is ended when it comes back from what holds it up")
                fcntl.flock(lock, fcntl.LOCK_UN)
                reply = await waiting
                assert (reply.result if reply.error is None else reply.error.type) == case.outcome
                total = 2 if isinstance(case.outcome, int) else 1
                assert await client.call("counter", "a", "add", timeout=PATIENCE_SECONDS) == total + 1

    with held.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asyncio.run(main(lock))

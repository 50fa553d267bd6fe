"""A process that reads accounts at the latest epoch, straight from the workers, as a gateway does, but without HTTP: so
that what it takes of the machine is little beside what the workers take.

    python -m benchmarks.read_cost.reader COORDINATOR LOG RATE KEYS

It reads until SIGTERM, and then prints what it has seen as JSON. The cluster's secret is in STYX_SECRET.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from random import Random
from typing import Final

import msgspec

from benchmarks.driver.latency import Cells, percentile_us, record
from proof.bank import account
from styx.cluster.gateway.process import GatewayProcess
from styx.errors import RequestRejected
from styx.kafka.address import parse_kafka_url
from styx.model.freshness import LATEST, Freshness
from styx.model.function_spec import READ_FUNCTION
from styx.model.signature import NO_ARGUMENTS
from styx.transport import Security

TICK_SECONDS: Final = 0.002
POLL_SECONDS: Final = 0.05


class Seen(msgspec.Struct):
    """`reads` that were answered, `refused` ones, and the latencies of the former in microseconds."""

    reads: int = 0
    refused: int = 0
    p50_us: int = 0
    p99_us: int = 0


class Reader:
    """Reads through `gateway`, so many a second, of accounts `a0` to the last one of `keys`."""

    def __init__(self, gateway: GatewayProcess, rate: float, keys: int) -> None:
        self.seen = Seen()
        self._gateway = gateway
        self._rate = rate
        self._keys = keys
        self._rng = Random(1)
        self._latencies: Cells = {}
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self, until: asyncio.Event) -> Seen:
        """Reads in an open loop. What this process could not send in time is left out."""
        while self._gateway.n_slots == 0:  # noqa: ASYNC110 - the gateway tells nobody
            await asyncio.sleep(POLL_SECONDS)
        last_s, due = time.monotonic(), 0.0
        while not until.is_set():
            await asyncio.sleep(TICK_SECONDS)
            now_s = time.monotonic()
            due += min(now_s - last_s, 0.1) * self._rate
            last_s = now_s
            for _ in range(int(due)):
                task = asyncio.create_task(self._read(now_s))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
            due -= int(due)
        for task in self._under_way:
            task.cancel()
        self.seen.p50_us, self.seen.p99_us = (percentile_us(self._latencies, each) for each in (50, 99))
        return self.seen

    async def _read(self, began_s: float) -> None:
        gateway, key = self._gateway, f"a{self._rng.randrange(self._keys)}"
        request = gateway.maker.make(account.name, key, READ_FUNCTION, NO_ARGUMENTS)
        try:
            found = await gateway.read(request, Freshness(LATEST))
        except RequestRejected:
            self.seen.refused += 1
            return
        assert found.error is None, found
        self.seen.reads += 1
        record(self._latencies, [int((time.monotonic() - began_s) * 1e6)])


async def run(coordinator: str, log: str, rate: float, keys: int) -> Seen:
    """Until SIGTERM."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    security = Security(os.environ["STYX_SECRET"].encode(), "styx")
    gateway = GatewayProcess("reader", security, coordinator, parse_kafka_url(log))
    following = asyncio.create_task(gateway.run())
    try:
        return await Reader(gateway, rate, keys).run(over)
    finally:
        following.cancel()
        await asyncio.wait([following])
        await gateway.close()


def main() -> None:
    """The program."""
    logging.basicConfig(level=logging.ERROR)
    coordinator, log, rate, keys = sys.argv[1:]
    seen = run(coordinator, log, float(rate), int(keys))
    try:
        import uvloop
    except ImportError:
        found = asyncio.run(seen)
    else:
        found = uvloop.run(seen)
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")


if __name__ == "__main__":
    main()

"""Reads outside the log on a real cluster, while one of its workers is killed: never torn, tokens honoured, and strict
ones see every write that was answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.reads_app import COUNTERS
from styx import NotSent, RequestRejected, SnapshotTooOld
from styx.client.base import Client
from styx.client.connect import connect
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow

RUN_SECONDS = 6.0
KILLED_AT_SECONDS = 2.0


class Tally:
    """How many reads of each kind have been checked, and how many of them behind the kill."""

    def __init__(self) -> None:
        self.killed = False
        self.reads: dict[str, int] = {}
        self.behind: dict[str, int] = {}

    def add(self, kind: str) -> None:
        self.reads[kind] = self.reads.get(kind, 0) + 1
        if self.killed:
            self.behind[kind] = self.behind.get(kind, 0) + 1


async def write_and_read(place: int, writer: Client, reader: Client, tally: Tally, end_s: float) -> None:
    """Raises one pair of counters again and again, and reads it at every freshness; nobody else writes to it."""
    mine, twin = f"a{place}", f"b{place}"
    written = 0
    while asyncio.get_running_loop().time() < end_s:
        reply = await writer.request("counter", mine, "add_both", twin, timeout=PATIENCE_SECONDS)
        assert reply.unwrap() == written + 1
        written += 1
        for freshness in ("strict", "session"):
            if freshness == "session":
                reader.saw(reply.epoch)
            read = await reader.read_request(
                "counter", mine, "values", [twin], freshness=freshness, timeout=PATIENCE_SECONDS
            )
            assert read.unwrap() == [written, written], freshness
            assert freshness == "strict" or read.epoch >= reply.epoch
            tally.add(freshness)
        within = await reader.read("counter", mine, "values", [twin], max_staleness_s=0.0, timeout=PATIENCE_SECONDS)
        assert within == [written, written]


async def look(reader: Client, tally: Tally, end_s: float) -> None:
    """Reads all pairs at once, at the newest epoch and at the one that it has just read."""
    others = [f"{letter}{place}" for letter in "ab" for place in range(COUNTERS)]
    while asyncio.get_running_loop().time() < end_s:
        reply = await reader.read_request("counter", "a0", "values", others, timeout=PATIENCE_SECONDS)
        _, *found = reply.unwrap()
        assert found[:COUNTERS] == found[COUNTERS:], "a torn read"
        tally.add("latest")
        if reply.epoch < 0:
            continue  # nothing has been written
        again = await reader.read_request("counter", "b0", "values", others, at=reply.epoch, timeout=PATIENCE_SECONDS)
        try:
            assert again.unwrap()[1:] == found
        except (SnapshotTooOld, NotSent):
            continue
        tally.add("at")


async def run(options: ClusterOptions, tally: Tally) -> None:
    async with ClusterUnderTest(options) as cluster:
        await cluster.start()
        await cluster.settled()
        end_s = asyncio.get_running_loop().time() + RUN_SECONDS
        async with contextlib.AsyncExitStack() as clients:
            writer = await clients.enter_async_context(cluster.client())
            readers = [await clients.enter_async_context(connect(cluster.http_url)) for _ in range(COUNTERS + 2)]

            async def kill() -> None:
                await asyncio.sleep(KILLED_AT_SECONDS)
                await cluster.replace_worker(1)
                tally.killed = True

            async with asyncio.TaskGroup() as group:
                group.create_task(kill())
                for place in range(COUNTERS):
                    group.create_task(write_and_read(place, writer, readers[place], tally, end_s))
                for reader in readers[COUNTERS:]:
                    group.create_task(look(reader, tally, end_s))
            with pytest.raises(RequestRejected, match="bad_arguments"):
                await readers[0].read("counter", "a0", "values", 7)
            with pytest.raises(RequestRejected, match="not_read_only"):
                await readers[0].read("counter", "a0", "add")
            cluster.check()


def test_reads_while_a_worker_is_killed(kafka: RealKafka, tmp_path: Path) -> None:
    name = f"reads-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app="proof.cluster.reads_app:app",
        name=name,
        kafka=kafka.bootstrap,
        store=f"file://{tmp_path}/store",
        directory=tmp_path / "processes",
    )
    tally = Tally()
    asyncio.run(asyncio.wait_for(run(options, tally), 2 * PATIENCE_SECONDS))
    for kind in ("latest", "at", "session", "strict"):
        assert tally.reads.get(kind, 0) >= 10, tally.reads
        assert tally.behind.get(kind, 0) >= 1, tally.behind

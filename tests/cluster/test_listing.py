"""Listings on a real cluster beside writers, while one of its workers is killed: pages of one epoch are one moment, in
which each pair of counters is whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from pathlib import Path

import pytest

from proof.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.reads_app import COUNTERS
from styx import SnapshotTooOld
from styx.cli import main
from styx.client.base import Client
from styx.client.connect import connect
from styx.errors import ConfigurationError
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow

RUN_SECONDS = 6.0
KILLED_AT_SECONDS = 2.0
NAMES = sorted(f"{letter}{place}" for letter in "ab" for place in range(COUNTERS))


class Tally:
    """How many listings were checked, of one page and of several, behind the kill, and that came too late."""

    def __init__(self) -> None:
        self.killed = False
        self.pages = self.several = self.behind = self.too_old = 0


async def write(place: int, writer: Client, end_s: float) -> None:
    while asyncio.get_running_loop().time() < end_s:
        await writer.call("counter", f"a{place}", "add_both", f"b{place}", timeout=PATIENCE_SECONDS)


async def look(lister: Client, tally: Tally, limit: int, end_s: float) -> None:
    while asyncio.get_running_loop().time() < end_s:
        page = await lister.list("counter", limit=limit, timeout=PATIENCE_SECONDS)
        found, epoch = list(page.entries), page.epoch
        try:
            while page.after is not None:
                page = await lister.list("counter", limit=limit, after=page.after, at=epoch, timeout=PATIENCE_SECONDS)
                assert page.epoch == epoch
                found += page.entries
        except SnapshotTooOld:
            tally.too_old += 1
            continue
        values = dict(found)
        assert list(values) == NAMES
        assert [values[f"a{place}"] for place in range(COUNTERS)] == [values[f"b{place}"] for place in range(COUNTERS)]
        tally.pages += limit >= len(NAMES)
        tally.several += limit < len(NAMES)
        tally.behind += tally.killed


async def by_hand(client: Client, url: str) -> None:
    """The commands see the same, and what they write is a transaction of the history that is checked."""
    before = dict((await client.list("counter", freshness="strict", timeout=PATIENCE_SECONDS)).entries)
    edit = ("state", "edit", "counter", "by hand", "--set", "70", "--url", url)
    assert await asyncio.to_thread(main, edit) == 0
    assert await asyncio.to_thread(main, ("state", "list", "counter", "--limit", "2", "--url", url)) == 0
    after = await client.list("counter", freshness="strict", timeout=PATIENCE_SECONDS)
    assert dict(after.entries) == {**before, "by hand": 70}


async def run(options: ClusterOptions, tally: Tally) -> None:
    async with ClusterUnderTest(options) as cluster:
        await cluster.start()
        await cluster.settled()
        async with contextlib.AsyncExitStack() as clients:
            writer = await clients.enter_async_context(cluster.client())
            listers = [await clients.enter_async_context(connect(cluster.http_url)) for _ in range(3)]
            for place in range(COUNTERS):
                await writer.call("counter", f"a{place}", "add_both", f"b{place}", timeout=PATIENCE_SECONDS)
            strict = await listers[0].list("counter", freshness="strict", timeout=PATIENCE_SECONDS)
            assert [(key, value) for key, value in strict.entries] == [(name, 1) for name in NAMES]
            end_s = asyncio.get_running_loop().time() + RUN_SECONDS

            async def kill() -> None:
                await asyncio.sleep(KILLED_AT_SECONDS)
                await cluster.replace_worker(1)
                tally.killed = True

            async with asyncio.TaskGroup() as group:
                group.create_task(kill())
                for place in range(COUNTERS):
                    group.create_task(write(place, writer, end_s))
                for lister, limit in zip(listers, (100, 100, 6), strict=True):
                    group.create_task(look(lister, tally, limit, end_s))
            with pytest.raises(ConfigurationError, match="connect to a gateway by HTTP"):
                await writer.list("counter")
            await by_hand(listers[0], cluster.http_url)
            cluster.check()


def test_listings_while_a_worker_is_killed(kafka: RealKafka, tmp_path: Path) -> None:
    name = f"listing-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app="proof.cluster.reads_app:app",
        name=name,
        kafka=kafka.bootstrap,
        store=f"file://{tmp_path}/store",
        directory=tmp_path / "processes",
    )
    tally = Tally()
    asyncio.run(asyncio.wait_for(run(options, tally), 2 * PATIENCE_SECONDS))
    assert min(tally.pages, tally.several) >= 5, vars(tally)
    assert tally.behind >= 1, vars(tally)

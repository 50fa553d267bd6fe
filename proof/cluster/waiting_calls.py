"""An agenda of many calls that wait, on a real cluster: given, in a snapshot, through a restart of everything, and
through a change of the number of workers and back.

    python -m proof.cluster.waiting_calls --calls 1000000

Each step ends when the workers together have all calls again. In the end the agenda is read from the last snapshot and
compared call by call; with `--deliver` the clocks are set forward, and each call has to be made once. The exit status
is 1 if a call was lost or doubled.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.given_calls import given_for_later
from proof.cluster.recorded import newest_manifest, snapshot_state
from proof.cluster.services import local_services, working_directory
from proof.cluster.skewed_worker import MODULE, set_clocks
from styx.cli.facts_client import fetch_status
from styx.client.base import Client
from styx.model.agenda import decode_entry
from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator
from styx.model.table_names import holds_agenda
from styx.testing.patience import PATIENCE_SECONDS

APP: Final = "proof.cluster.waiting_calls:app"
EACH: Final = 100
"""Calls that one request gives."""
AT_ONCE: Final = 20
"""Requests that are under way together."""
DELAY: Final = timedelta(days=1)
POLL_SECONDS: Final = 0.05
STEP_SECONDS_MAX: Final = 2 * PATIENCE_SECONDS

giver = Operator("giver", key_type=int)
book = Operator("book", key_type=int)


@giver.register
async def give(ctx: Context, count: int) -> None:
    """Gives calls that are due a day later."""
    for number in range(count):
        ctx.after(DELAY, book, write, ctx.key * EACH + number)


@giver.register(read_only=True)
async def wrong(ctx: Context, count: int) -> int:
    """How many of the calls that it gave were not made once."""
    made = [await ctx.call(book, times, ctx.key * EACH + number) for number in range(count)]
    return sum(number != 1 for number in made)


@book.register
async def write(ctx: Context) -> None:
    """Counts how often it is called."""
    await ctx.put(await ctx.get(0) + 1)


@book.register(read_only=True)
async def times(ctx: Context) -> int:
    """How often it was called."""
    return await ctx.get(0)  # type: ignore[no-any-return]


app = App("waiting", [giver, book])


class Step(NamedTuple):
    """What was done, how long it took until all calls were there again, and the longest time without a reply."""

    name: str
    seconds: float
    silence_s: float


class Waited(NamedTuple):
    """`lost` and `doubled` calls, by the last snapshot; `wrong` ones, by what was made, None if none was to be."""

    steps: list[Step]
    snapshot_bytes: int
    lost: int
    doubled: int
    wrong: int | None


class Trial:
    """Of a cluster that has not been started, of two workers."""

    def __init__(self, cluster: ClusterUnderTest, calls: int, tell: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._calls = calls
        self._tell = tell
        self._steps: list[Step] = []
        self._replies: list[float] = []

    async def run(self, deliver: bool) -> Waited:
        """Goes through everything."""
        cluster = self._cluster
        await cluster.start()
        async with cluster.client() as client:
            asking = asyncio.create_task(self._ask(client))
            await self._step("given", self._give(client))
            await self._step("in a snapshot", self._stored())
            size = await asyncio.to_thread(self._snapshot_bytes)
            await self._step("restart of the coordinator and all workers", self._restart())
            await self._step("from 2 to 3 workers", self._scale(3))
            await self._step("from 3 to 2 workers", self._scale(2))
            found = await self._deliver(client) if deliver else None
            asking.cancel()
            await asyncio.wait([asking])
        assert cluster.coordinator is not None
        await cluster.coordinator.stop()  # it has taken a last snapshot then
        cluster.coordinator = None
        lost, doubled = await asyncio.to_thread(self._compared, deliver)
        return Waited(self._steps, size, lost, doubled, found)

    async def _step(self, name: str, work: Awaitable[None]) -> None:
        began_s = time.monotonic()
        await work
        async with asyncio.timeout(STEP_SECONDS_MAX):
            while await asyncio.to_thread(given_for_later, self._cluster) != self._calls:
                self._cluster.check()
                await asyncio.sleep(POLL_SECONDS)
        ended_s = time.monotonic()
        times = [began_s, *[each for each in self._replies if each > began_s], ended_s]
        silence_s = max(after - before for before, after in pairwise(times))
        self._steps.append(Step(name, ended_s - began_s, silence_s))
        self._tell(f"{name}: {ended_s - began_s:.1f} s; at most {silence_s:.1f} s without a reply")

    async def _ask(self, client: Client) -> None:
        """A client that goes on asking."""
        while True:
            await client.call("book", -1, "times", timeout=PATIENCE_SECONDS)
            self._replies.append(time.monotonic())
            await asyncio.sleep(POLL_SECONDS)

    async def _give(self, client: Client) -> None:
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(number: int) -> None:
            async with gate:
                await client.call("giver", number, "give", self._each(number), timeout=PATIENCE_SECONDS)

        await asyncio.gather(*map(one, self._givers))

    async def _stored(self) -> None:
        """A snapshot that begins now is complete."""
        status = await asyncio.to_thread(fetch_status, self._cluster.facts_url)
        store = await asyncio.to_thread(self._cluster.open_store)
        async with asyncio.timeout(STEP_SECONDS_MAX):
            while True:
                manifest = await asyncio.to_thread(newest_manifest, store)
                if manifest is not None and manifest.epoch >= status.epoch:
                    return
                await asyncio.sleep(POLL_SECONDS)

    async def _restart(self) -> None:
        cluster = self._cluster
        for child in (cluster.coordinator, *cluster.workers):
            assert child is not None
            await child.kill()
        await cluster.start_coordinator()
        for place in range(len(cluster.workers)):
            await cluster.start_worker(place)
        await self._shared(len(cluster.workers))

    async def _scale(self, workers: int) -> None:
        if workers > sum(worker is not None for worker in self._cluster.workers):
            await self._cluster.add_worker()
        await self._cluster.scale(workers)
        await self._shared(workers)

    async def _shared(self, workers: int) -> None:
        """So many workers share the slots, and epochs run."""
        async with asyncio.timeout(STEP_SECONDS_MAX):
            while True:
                try:
                    status = await asyncio.to_thread(fetch_status, self._cluster.facts_url)
                except OSError:
                    status = None
                members = 0 if status is None else sum(bool(each.member and each.slots) for each in status.workers)
                if status is not None and status.phase == "running" and members == workers:
                    return
                self._cluster.check()
                await asyncio.sleep(POLL_SECONDS)

    async def _deliver(self, client: Client) -> int:
        """Has all calls made; how many were not made once."""
        began_s = time.monotonic()
        set_clocks(self._cluster.options.directory, DELAY + timedelta(hours=1))
        async with asyncio.timeout(STEP_SECONDS_MAX):
            while await asyncio.to_thread(given_for_later, self._cluster) != 0:  # noqa: ASYNC110 - other processes
                await asyncio.sleep(POLL_SECONDS)
        self._tell(f"made: {time.monotonic() - began_s:.1f} s")
        found = 0
        for number in self._givers:
            found += await client.call("giver", number, "wrong", self._each(number), timeout=PATIENCE_SECONDS)
        return found

    # What is counted ---------------------------------------------------------------------------------------

    @property
    def _givers(self) -> range:
        return range(-(-self._calls // EACH))

    def _each(self, number: int) -> int:
        return min(EACH, self._calls - number * EACH)

    def _snapshot_bytes(self) -> int:
        manifest = newest_manifest(self._cluster.open_store())
        assert manifest is not None, "a snapshot was waited for"
        return sum(each.size for slot in manifest.slots for each in slot.objects)

    def _compared(self, delivered: bool) -> tuple[int, int]:
        store = self._cluster.open_store()
        manifest = newest_manifest(store)
        assert manifest is not None, "a snapshot was waited for"
        waiting: Counter[Any] = Counter(
            decode_entry(data).key
            for (table, _), data in snapshot_state(store, manifest).items()
            if holds_agenda(table)
        )
        wanted = Counter(range(0 if delivered else self._calls))
        return (wanted - waiting).total(), (waiting - wanted).total()


async def run(options: ClusterOptions, calls: int, deliver: bool, tell: Callable[[str], None]) -> Waited:
    """Starts a cluster for a trial."""
    async with ClusterUnderTest(options) as cluster:
        return await Trial(cluster, calls, tell).run(deliver)


def cluster_options(kafka: str, directory: Any, store: str, s3_endpoint: str | None) -> ClusterOptions:
    """Two workers, whose clocks can be set."""
    return ClusterOptions(
        app=APP,
        name=f"waiting-{secrets.token_hex(4)}",
        kafka=kafka,
        store=store,
        s3_endpoint=s3_endpoint,
        directory=directory,
        worker_module=MODULE,
        silence_s=3.0,
    )


def main() -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.waiting_calls", description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000, help="default 1,000,000")
    parser.add_argument("--deliver", action="store_true", help="make all calls in the end")
    given = parser.parse_args()
    directory = working_directory("waiting-calls")
    with local_services() as services:
        options = cluster_options(services.kafka_address, directory, "waiting", services.s3_endpoint)
        tell: Callable[[str], None] = lambda text: print(text, flush=True)  # noqa: E731
        found = asyncio.run(run(options, given.calls, given.deliver, tell))
    print(
        f"the snapshot has {found.snapshot_bytes / 1e6:.0f} MB, {found.snapshot_bytes / given.calls:.0f} bytes a call"
    )
    print(f"lost {found.lost}, doubled {found.doubled}" + ("" if found.wrong is None else f", not once {found.wrong}"))
    return 1 if found.lost or found.doubled or found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""The change feed of a real cluster while one of its workers is killed: all changes, laid over the state at the
beginning, are the state at the end; each epoch comes once, whole, in order.
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
from styx.client.base import Client
from styx.client.changes import ChangeReader
from styx.client.connect import connect
from styx.testing.patience import PATIENCE_SECONDS
from tests.real_services import RealKafka

pytestmark = pytest.mark.slow

RUN_SECONDS = 6.0
KILLED_AT_SECONDS = 2.0
FEW = 25
"""Epochs, behind which the second follower leaves and comes again."""
NAMES = [f"{letter}{place}" for letter in "ab" for place in range(COUNTERS)]


async def write(place: int, writer: Client, end_s: float) -> int:
    """Raises one pair of counters in one transaction, again and again; how often."""
    written = 0
    while asyncio.get_running_loop().time() < end_s:
        reply = await writer.request("counter", f"a{place}", "add_both", f"b{place}", timeout=PATIENCE_SECONDS)
        written = reply.unwrap()
    return written


class Copy:
    """What the changes make of the counters, which begin with nothing."""

    def __init__(self) -> None:
        self.state: dict[str, int] = {}
        self.epochs: list[int] = []

    async def follow(self, reader: ChangeReader, wanted: asyncio.Future[dict[str, int]]) -> None:
        """Until it has what is wanted."""
        steps = aiter(reader)
        while not (wanted.done() and self.state == wanted.result()):
            found = await anext(steps)
            assert not self.epochs or found.epoch > self.epochs[-1], "an epoch has come twice"
            self.epochs.append(found.epoch)
            for change in found.changes:
                assert change.table is None
                assert change.value > self.state.get(change.key, 0), "a counter goes back"
                self.state[change.key] = change.value
            for place in range(COUNTERS):
                pair = [self.state.get(f"{letter}{place}", 0) for letter in "ab"]
                assert pair[0] == pair[1], f"an epoch is torn: {pair}"


async def run(options: ClusterOptions) -> tuple[Copy, Copy]:
    async with ClusterUnderTest(options) as cluster:
        await cluster.start()
        await cluster.settled()
        end_s = asyncio.get_running_loop().time() + RUN_SECONDS
        async with contextlib.AsyncExitStack() as clients:
            writer = await clients.enter_async_context(cluster.client())
            follower = await clients.enter_async_context(connect(cluster.http_url))
            whole, again = Copy(), Copy()
            wanted: asyncio.Future[dict[str, int]] = asyncio.get_running_loop().create_future()
            reader = follower.changes("counter")
            await reader.begin()

            async def come_again() -> None:
                """A second one leaves after each few epochs, and comes again behind the last."""
                place = reader.epoch
                assert place is not None
                while not (wanted.done() and again.state == wanted.result()):
                    async with follower.changes("counter", from_epoch=place + 1) as other:
                        await again.follow(other, _soon(again, wanted))
                        assert other.epoch is not None
                        place = other.epoch

            async def kill() -> None:
                await asyncio.sleep(KILLED_AT_SECONDS)
                await cluster.replace_worker(1)

            async with asyncio.TaskGroup() as group:
                group.create_task(kill())
                group.create_task(whole.follow(reader, wanted))
                group.create_task(come_again())
                counts = [group.create_task(write(place, writer, end_s)) for place in range(COUNTERS)]
                written = await asyncio.gather(*counts)
                written[0] += FEW + 1
                wanted.set_result({f"{letter}{place}": n for letter in "ab" for place, n in enumerate(written)})
                for _ in range(FEW + 1):  # what both wait for, who may have all by now
                    await writer.request("counter", "a0", "add_both", "b0", timeout=PATIENCE_SECONDS)
            for name in NAMES:
                read = await follower.read("counter", name, freshness="strict", timeout=PATIENCE_SECONDS)
                assert read.unwrap() == whole.state[name]
            with pytest.raises(SnapshotTooOld):
                await follower.changes("counter", from_epoch=0).begin()
            cluster.check()
            return whole, again


def _soon(copy: Copy, wanted: asyncio.Future[dict[str, int]]) -> asyncio.Future[dict[str, int]]:
    """What is wanted, once it is known; before that, nothing more than a few epochs."""
    if wanted.done():
        return wanted
    return _Few(copy)


class _Few(asyncio.Future):  # type: ignore[type-arg]
    """Is wanted as soon as a copy has a few further epochs."""

    def __init__(self, copy: Copy) -> None:
        super().__init__()
        self._copy = copy
        self._until = len(copy.epochs) + FEW

    def done(self) -> bool:
        return len(self._copy.epochs) >= self._until

    def result(self) -> dict[str, int]:
        return self._copy.state


def test_changes_while_a_worker_is_killed(kafka: RealKafka, tmp_path: Path) -> None:
    name = f"changes-{secrets.token_hex(4)}"
    options = ClusterOptions(
        app="proof.cluster.reads_app:app",
        name=name,
        kafka=kafka.bootstrap,
        store=f"file://{tmp_path}/store",
        directory=tmp_path / "processes",
    )
    whole, again = asyncio.run(asyncio.wait_for(run(options), 2 * PATIENCE_SECONDS))
    assert whole.epochs == again.epochs
    assert len(whole.epochs) > 50

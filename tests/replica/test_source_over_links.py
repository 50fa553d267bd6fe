"""How old a replica calls its state, and what it forgets with a history, over a store and links moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from styx.cluster.wire import Owners
from styx.model.changes import EpochChanges, TableChanges
from styx.protocol.changes import ChangesGiven, FollowAsked, FollowOver
from styx.query.schema import of_description
from styx.query.source import Place
from styx.replica import epoch_source
from styx.replica.cluster import Cluster
from styx.replica.epoch_source import EpochSource
from styx.replica.follower import Follower
from styx.schema.description import AppDescription
from styx.testing.patience import PATIENCE_SECONDS
from tests.backup import snapshots
from tests.replica.test_follower import Clock, described

LARGE = 2**40
WORKER = 7


@dataclass
class Following:
    """Somebody who follows the worker."""

    asked: FollowAsked
    heard: Callable[[ChangesGiven | FollowOver | None], None]
    left: bool = False

    def taken(self, messages: int) -> None:
        pass

    def leave(self) -> None:
        self.left = True

    def give(self, through: int, *epochs: int, closed_s: float = 0.0) -> None:
        """As the worker does."""
        tables = [TableChanges(0, "account", ["a"], [b"1"])]
        changes = [EpochChanges(epoch, 0, tables) for epoch in epochs]
        self.heard(ChangesGiven(self.asked.id, through, changes, int(closed_s * 1e6)))


@dataclass
class Net:
    """In place of `ClusterReads` and its one link, and of `Cluster`."""

    known: Owners | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    all: list[Following] = field(default_factory=list)
    received: int = 0
    coordinator: str = "c"
    connected: bool = True
    deployment: None = None
    refused: None = None

    @property
    def reads(self) -> Net:
        return self

    async def run(self) -> None:
        await asyncio.Event().wait()

    def link(self, known: Owners, worker: int) -> Net:
        return self

    async def follow(self, message: Callable[[int], FollowAsked], heard: Callable[[Any], None]) -> Following:
        self.all.append(Following(message(len(self.all)), heard))
        return self.all[-1]

    def bytes_received(self) -> dict[int | None, int]:
        """Somebody is heard of at each look."""
        self.received += 1
        return {None: self.received, WORKER: self.received}

    async def behind(self, epoch: int) -> Following:
        """Who follows behind the end of an epoch, once somebody does."""
        await until(lambda: any(each.asked.after == epoch for each in self.all))
        return next(each for each in self.all if each.asked.after == epoch)

    def begins(self, generation: int, loaded: tuple[int, int], recorded: int) -> None:
        self.known = Owners(generation, {0: WORKER, 1: WORKER}, {WORKER: "w/1"}, 3, loaded, recorded)
        self.changed.set()
        self.changed = asyncio.Event()


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - a test has no event for it
            await asyncio.sleep(0.001)


@asynccontextmanager
async def running(
    net: Net, store: snapshots.Cluster, clock: Clock, describe: Callable[[int], AppDescription] = described
) -> AsyncIterator[EpochSource]:
    snapshots_of = Follower(lambda: Place(store.store, describe), of_description, LARGE, clock)
    source = EpochSource(snapshots_of, cast(Cluster, net), LARGE, clock)
    task = asyncio.ensure_future(source.run(lambda: None))
    try:
        yield source
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def looks(net: Net, n: int = 4) -> None:
    """The source looks at who was heard of, so often."""
    wanted = net.received + n
    await until(lambda: net.received >= wanted)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_source, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(epoch_source, "HEARD_SECONDS", 0.002)


def test_a_state_is_not_new_while_recorded_epochs_run_again() -> None:
    """Its workers are heard of all the time, and what was answered before is not shown yet."""

    async def test() -> None:
        net, store, clock = Net(), snapshots.Cluster(), Clock()
        store.snapshot(5, {"a": b"0"}, generation=4)
        net.begins(6, (4, 5), recorded=8)
        async with running(net, store, clock) as source:
            following = await net.behind(5)
            came_s, clock.now = clock.now, clock.now + 10.0
            following.give(5)
            await until(lambda: source.following)
            for epoch in (5, 6, 7):
                if epoch > 5:
                    following.give(epoch, epoch, closed_s=clock.now)
                    await until(lambda: source.moment is not None and source.moment.state.epoch == epoch)  # noqa: B023
                clock.now += 10.0
                await looks(net)
                assert source.moment is not None
                assert source.moment.as_of_s == came_s, f"as if nothing had closed behind epoch {epoch}"
            following.give(8, 8, closed_s=clock.now)
            await until(lambda: source.moment is not None and source.moment.state.epoch == 8)
            assert source.moment is not None
            assert source.moment.as_of_s == clock.now
            clock.now += 10.0
            await looks(net)
            assert source.moment is not None
            assert source.moment.as_of_s == clock.now

    asyncio.run(test())


def test_epochs_that_closed_at_an_unknown_time_make_a_state_no_newer() -> None:
    async def test() -> None:
        net, store, clock = Net(), snapshots.Cluster(), Clock()
        store.snapshot(5, {"a": b"0"}, generation=4)
        net.begins(6, (4, 5), recorded=5)
        async with running(net, store, clock) as source:
            following = await net.behind(5)
            came_s, clock.now = clock.now, clock.now + 10.0
            following.give(5)
            following.give(6, 6)
            await until(lambda: source.moment is not None and source.moment.state.epoch == 6)
            assert source.moment is not None
            assert source.moment.state.closed_s == came_s

    asyncio.run(test())


def test_a_version_is_another_one_in_another_history() -> None:
    """As when a restored cluster deploys again what it has lost, and something else comes of it."""

    async def test() -> None:
        net, store, clock, more = Net(), snapshots.Cluster(), Clock(), 0
        store.snapshot(5, {"a": b"0"}, generation=4)
        net.begins(6, (4, 5), recorded=5)
        async with running(net, store, clock, lambda version: described(version + more)) as source:
            following = await net.behind(5)
            following.give(5)
            following.give(6, 6)
            await until(lambda: source.moment is not None and source.moment.state.epoch == 6)
            assert source.moment is not None
            assert len(source.moment.relations) == 3
            more = 1
            store.snapshot(2, {"b": b"0"}, whole=True, generation=7)
            net.begins(7, (4, 1), recorded=1)
            following.heard(None)
            await until(lambda: source.moment is not None and source.moment.state.epoch == 2)
            assert source.moment is not None
            assert len(source.moment.relations) == 4

    asyncio.run(test())

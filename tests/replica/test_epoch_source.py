"""A replica's source over workers' cores: generations that end, links that break, snapshots that come late, and changes
that are not kept. What it shows is always the state at the end of its epoch, and never goes back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, cast

import msgspec
import pytest

from styx.cluster.wire import Deployment
from styx.errors import ConfigurationError
from styx.model.limits import Limits
from styx.query.relations import relations
from styx.query.schema import Schema, of_app
from styx.replica import epoch_source
from styx.replica.cluster import Cluster as ReplicasCluster
from styx.replica.epoch_source import EpochSource
from styx.replica.follower import Described, Followed, Follower, Moment, Wanted
from styx.replica.state import EpochState, whole
from styx.testing.patience import PATIENCE_SECONDS
from tests.cluster.gateway.test_changes import Cluster, Net, State
from tests.plain_form import plain_form
from tests.worker.test_read_exchange import KEYS, app

LARGE = 2**40
SEEDS = 25
EPOCHS = 60
SCHEMA: Schema = of_app(app)


class Snapshots:
    """In place of a `Follower`: the snapshots that a test puts there, by generation and epoch."""

    def __init__(self) -> None:
        self.moment: Moment | None = None
        self.generation = -1
        self.trouble: str | None = None
        self.followed = Followed()
        self.there: dict[tuple[int, int], EpochState] = {}
        self.versions: list[int] = []

    def put(self, generation: int, epoch: int, state: State, version: int = 1) -> None:
        contents = {
            slot: {"account": {KEYS[slot]: msgspec.msgpack.encode(state[KEYS[slot]])} if KEYS[slot] in state else {}}
            for slot in range(2)
        }
        self.there[generation, epoch] = whole(epoch, version, 0.0, contents, LARGE)  # type: ignore[arg-type]

    def look(self, wanted: Wanted) -> bool:
        for (generation, epoch), state in sorted(self.there.items(), reverse=True):
            if wanted(generation, epoch):
                self.generation, self.moment = generation, Moment(state, *self.described(state.version))
                self.followed.taken += 1
                return True
        return False

    def described(self, version: int) -> Described:
        self.versions.append(version)
        return Described(SCHEMA, relations(SCHEMA))

    def release(self) -> None:
        self.moment, self.generation = None, -1


class Heard:
    """In place of the replica's `Cluster`."""

    def __init__(self, net: Net) -> None:
        self.reads = net
        self.connected = True
        self.deployment: Deployment | None = None
        self.refused: str | None = None
        self.coordinator = "c:1"
        self.received: dict[int | None, int] = {0: 0, 1: 0, None: 0}

    async def run(self) -> None:
        await asyncio.Event().wait()

    def bytes_received(self) -> dict[int | None, int]:
        return self.received


class Beside:
    """A cluster, and a replica beside it, each of whose moments is held against what the cluster has been."""

    def __init__(self, seed: int, bytes_max: int = LARGE) -> None:
        self.rng = Random(seed)
        self.cluster = Cluster(self.rng)
        self.net = Net(self.cluster)
        self.heard = Heard(self.net)
        self.snapshots = Snapshots()
        self.now_s = 1_000.0
        self.source = EpochSource(
            cast(Follower, self.snapshots), cast(ReplicasCluster, self.heard), bytes_max, lambda: self.now_s
        )
        self.shown: list[int] = []

    def later(self) -> None:
        moment = self.source.moment
        assert moment is not None
        epoch = moment.state.epoch
        assert not self.shown or epoch >= self.shown[-1], "it goes back"
        self.shown.append(epoch)
        expected = self.cluster.states[epoch] if epoch >= 0 else {}
        assert content(moment.state) == expected, f"not the state at the end of epoch {epoch}"

    @property
    def at(self) -> int:
        moment = self.source.moment
        return -2 if moment is None else moment.state.epoch

    @property
    def last(self) -> int:
        return len(self.cluster.script) - 1

    def snapshot(self) -> None:
        self.snapshots.put(self.cluster.generation, self.last, self.cluster.states[self.last])

    async def settle(self, rounds: int) -> None:
        for _ in range(rounds):
            self.net.deliver(self.rng.randrange(4))
            await asyncio.sleep(0)

    async def until(self, condition: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not condition():
                    self.net.deliver(10)
                    await asyncio.sleep(0.0005)
        except TimeoutError:
            raise AssertionError(f"it is not so: {self.at} of {self.last}, {self.source.trouble}") from None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.ensure_future(self.source.run(self.later))
        try:
            yield
            if task.done():
                task.result()
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def content(state: EpochState) -> State:
    return {
        key: msgspec.msgpack.decode(value)
        for tables in state.slots.values()
        for key, value in (tables["account"].entries() if "account" in tables else {}).items()
    }


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RETRY_SECONDS", "LOOK_SECONDS", "HEARD_SECONDS"):
        monkeypatch.setattr(epoch_source, name, 0.0)


async def history(seed: int) -> tuple[int, int]:
    """One random history; how many moments there were, and how often a snapshot had to help."""
    beside = Beside(seed)
    cluster, net, rng = beside.cluster, beside.net, beside.rng
    async with beside.running():
        while len(cluster.script) < EPOCHS:
            cluster.write(lambda: net.deliver(rng.randrange(3)))
            await beside.settle(rng.randrange(6))
            kind = rng.random()
            if kind < 0.08:
                cluster.begin(cluster.generation + 1)
                if rng.random() < 0.5 and cluster.loaded >= 0:
                    beside.snapshots.put(cluster.generation - 1, cluster.loaded, cluster.states[cluster.loaded])
                await beside.settle(rng.randrange(6))
                net.tell()
            elif kind < 0.14:
                net.lose(rng.randrange(2))
            elif kind < 0.3:
                beside.snapshot()
        net.tell()
        beside.snapshot()
        await beside.until(lambda: beside.at == beside.last and beside.source.following)
    return len(beside.shown), beside.source.dropped


@plain_form
def test_each_moment_is_the_state_of_its_epoch_and_it_comes_to_the_last() -> None:
    found = [asyncio.run(history(seed)) for seed in range(SEEDS)]
    assert sum(shown for shown, _ in found) > SEEDS * EPOCHS / 4
    assert sum(dropped for _, dropped in found) > 5


@plain_form
def test_an_epoch_comes_without_a_snapshot_and_says_how_late() -> None:
    async def test() -> None:
        beside = Beside(1)
        beside.cluster.write(lambda: None)
        beside.snapshot()
        beside.cluster.write(lambda: None)
        async with beside.running():
            await beside.until(lambda: beside.source.dropped == 1)  # nobody has followed: nothing is kept
            beside.cluster.write(lambda: None)
            assert beside.source.trouble is not None
            assert "they are kept from epoch 2 on" in beside.source.trouble
            beside.snapshot()
            await beside.until(lambda: beside.source.following)
            taken = beside.snapshots.followed.taken
            for _ in range(20):
                beside.cluster.write(lambda: None)
                await beside.until(lambda: beside.at == beside.last)
            assert (beside.source.dropped, beside.snapshots.followed.taken) == (1, taken)
            assert beside.source.trouble is None
            assert beside.source.lag.count >= 20
            assert beside.source.told()["follows"] == "epochs"

    asyncio.run(test())


@plain_form
def test_changes_are_kept_while_a_snapshot_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.worker.change_log.UNFOLLOWED_EPOCHS_MAX", 3)

    async def test() -> None:
        beside = Beside(2)
        beside.cluster.write(lambda: None)
        beside.snapshot()
        beside.cluster.write(lambda: None)
        async with beside.running():
            await beside.until(lambda: beside.source.dropped == 1)
            await beside.until(lambda: all(len(feed.followers) == 1 for feed in beside.cluster.feeds))
            beside.cluster.write(lambda: None)
            beside.snapshot()
            at = beside.last
            monkeypatch.setattr(epoch_source, "LOOK_SECONDS", 0.05)  # the snapshot is found late
            for _ in range(10):
                beside.cluster.write(lambda: None)
                await beside.settle(3)
            await beside.until(lambda: beside.at == beside.last)
            assert beside.source.dropped == 1
            assert at in beside.shown
            assert all(len(feed.followers) == 1 for feed in beside.cluster.feeds), "nothing is followed twice"

    asyncio.run(test())


@plain_form
def test_the_store_alone_while_nobody_says_who_gives_epochs() -> None:
    async def test() -> None:
        beside = Beside(3)
        beside.net.known = None
        beside.heard.connected = False
        async with beside.running():
            for _ in range(3):
                beside.cluster.write(lambda: None)
                beside.snapshot()
                await beside.until(lambda: beside.at == beside.last)
            assert beside.source.told()["follows"] == "snapshots"
            beside.heard.connected = True
            beside.net.tell()
            await beside.until(lambda: beside.source.following)

    asyncio.run(test())


@plain_form
def test_a_state_that_becomes_too_large_stays_as_it_was() -> None:
    async def test() -> None:
        beside = Beside(4, bytes_max=300)
        beside.cluster.script.append({0: 1})
        beside.cluster.states.append({KEYS[0]: 1})
        beside.cluster.epoch(0)
        beside.snapshot()
        async with beside.running():
            await beside.until(lambda: beside.source.following)
            beside.cluster.script.append({1: 3})
            beside.cluster.states.append({KEYS[0]: 1, KEYS[1]: 3})
            beside.cluster.epoch(1)
            await beside.until(lambda: not beside.source.following)
            assert beside.source.trouble == "the state takes 1 MiB, and --memory allows 0: it stays as it is"
            assert beside.at == 0

    asyncio.run(test())


@plain_form
@pytest.mark.parametrize(("name", "slots"), [("bank", 3), ("shop", 2)])
def test_the_store_of_another_deployment_ends_it(name: str, slots: int) -> None:
    async def test() -> None:
        beside = Beside(5)
        beside.cluster.write(lambda: None)
        beside.snapshot()
        beside.heard.deployment = Deployment(name, slots, 1, Limits())
        task = asyncio.ensure_future(beside.source.run(beside.later))
        with pytest.raises(ConfigurationError, match="give the coordinator's --store"):
            await asyncio.wait_for(task, PATIENCE_SECONDS)

    asyncio.run(test())


@plain_form
def test_an_older_generation_is_not_followed() -> None:
    async def test() -> None:
        beside = Beside(6)
        beside.cluster.begin(7)
        beside.net.tell()
        beside.cluster.write(lambda: None)
        beside.snapshot()
        async with beside.running():
            await beside.until(lambda: beside.source.following)
            at = beside.at
            beside.cluster.generation = 5
            beside.net.tell()
            beside.net.lose(0)
            await beside.until(lambda: not beside.source.following and "restored" in (beside.source.trouble or ""))
            assert beside.at == at

    asyncio.run(test())


@plain_form
def test_a_version_is_described_before_its_epochs_are_shown() -> None:
    async def test() -> None:
        beside: Any = Beside(7)
        beside.cluster.write(lambda: None)
        beside.snapshot()
        async with beside.running():
            await beside.until(lambda: beside.source.following)
            assert set(beside.snapshots.versions) == {1}
            beside.cluster.begin(2)
            beside.net.tell()
            beside.net.known = msgspec.structs.replace(beside.net.known, version=9)
            beside.snapshot()
            beside.net.lose(0)
            await beside.until(lambda: beside.source.moment.state.version == 9)
            assert 9 in beside.snapshots.versions

    asyncio.run(test())

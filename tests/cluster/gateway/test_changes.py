"""The change feed through a gateway, over workers' cores and links that are slow and break, and generations that end:
each rule of it, broken on purpose, is caught.

The cores run epochs with random writes. A new generation begins on the state of some closed epoch, runs those behind it
again, and may give the slots to other workers. The gateway hears of it later. A follower's changes, laid over the state
at the beginning, must be the state at each epoch that it gives, or it is told `SnapshotTooOld`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, cast

import msgspec
import pytest

from styx.cluster.gateway import changes
from styx.cluster.gateway.changes import ClusterChanges
from styx.cluster.gateway.reads import ClusterReads
from styx.cluster.wire import Owners
from styx.cluster.worker.following import WorkerFollowers
from styx.errors import SnapshotTooOld
from styx.messages import Request, encode_request
from styx.model.changes import FROM_NOW, EpochChanges
from styx.protocol.changes import ChangesGiven, FollowAsked, FollowOver
from styx.protocol.messages import Join, Recover, Resume
from styx.state.slot_state import SlotState
from styx.state.table import Table
from styx.testing.patience import PATIENCE_SECONDS
from styx.worker import followers
from styx.worker.change_log import ChangeLog, changes_of
from styx.worker.events import LoadedSlot, RequestsArrived, StateLoaded
from tests.plain_form import plain_form
from tests.worker.test_read_exchange import KEYS, Pair

SEEDS = 30
EPOCHS = 40
State = dict[str, int]


class Cluster(Pair):
    """Two workers, whose slots may change places. `states` are by epoch, `script` has the writes of each."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.owners = {0: 0, 1: 1}
        self.states: list[State] = []
        self.script: list[dict[int, int]] = []
        self.loaded = self.recorded = -1
        super().__init__()
        self.feeds: list[WorkerFollowers] = []
        self.sent: dict[tuple[int, int], deque[ChangesGiven | FollowOver]] = {}
        for number, worker in enumerate(self.workers):
            self.feeds.append(WorkerFollowers(worker, partial(self._sent, number)))

    def _sent(self, number: int, client: int, message: ChangesGiven | FollowOver) -> None:
        self.sent.setdefault((number, message.id), deque()).append(message)

    def begin(self, generation: int) -> None:
        """A generation begins, on the state of some epoch, and runs the epochs behind it again."""
        self.generation = generation
        self.undurable, self.offsets = [[], []], [0, 0]
        at = self.loaded = self.rng.randrange(max(-1, len(self.script) - 6), len(self.script))
        self.recorded = len(self.script) - 1
        if self.rng.random() < 0.5:
            self.owners = {slot: 1 - owner for slot, owner in self.owners.items()}
        state = self.states[at] if at >= 0 else {}
        for number in range(2):
            self.say(number, Recover(generation, self.owners, None, {0: "a/1", 1: "b/1"}))
            slots = {}
            for slot in [slot for slot, owner in self.owners.items() if owner == number]:
                entries = {KEYS[slot]: msgspec.msgpack.encode(state[KEYS[slot]])} if KEYS[slot] in state else {}
                slots[slot] = LoadedSlot(SlotState({"account": Table(entries, at)}), 0, [])
            self.step(number, StateLoaded(generation, at, 0, slots, [], {}))
            self.say(number, Resume(generation))
        for epoch in range(at + 1, len(self.script)):
            self.epoch(epoch)

    def put(self, slot: int, written: int) -> None:
        payload = encode_request(Request("r", "account", KEYS[slot], "put", msgspec.msgpack.encode([written])))
        self.step(self.owners[slot], RequestsArrived(self.generation, slot, [(self.offsets[slot], 0, payload)]))
        self.offsets[slot] += 1

    def epoch(self, number: int, between: Callable[[], None] = lambda: None) -> None:
        """Runs an epoch, whose writes the script has; `between` is called while one worker has closed it alone."""
        for slot, written in self.script[number].items():
            self.put(slot, written)
        for worker in range(2):
            self.say(worker, Join(self.generation, number))
        first = self.rng.randrange(2)
        for worker in range(2):
            self.run(worker)
        self.close(number, (first,))
        between()
        self.close(number, (1 - first,))

    def write(self, between: Callable[[], None]) -> None:
        """A new epoch."""
        number = len(self.script)
        self.script.append({slot: 10 * number + slot for slot in range(2) if self.rng.random() < 0.7})
        state = dict(self.states[-1]) if self.states else {}
        state |= {KEYS[slot]: written for slot, written in self.script[-1].items()}
        self.states.append(state)
        self.epoch(number, between)


class Link:
    """A gateway's link to a worker, over which messages take a while."""

    def __init__(self, net: Net, worker: int) -> None:
        self.net = net
        self.worker = worker
        self.heard: dict[int, Callable[[Any], None]] = {}

    async def follow(self, message: Callable[[int], FollowAsked], heard: Callable[[Any], None]) -> Any:
        net = self.net
        net.number += 1
        number = net.number
        self.heard[number] = heard
        net.cluster.feeds[self.worker].hear(0, message(number))
        return Hold(self, number)


class Hold:
    def __init__(self, link: Link, number: int) -> None:
        self.link = link
        self.number = number

    def taken(self, messages: int) -> None:
        feed = self.link.net.cluster.feeds[self.link.worker].followers
        for its_id in feed.ids():
            if its_id.number == self.number:
                feed.taken(its_id, messages)

    def leave(self) -> None:
        self.link.heard.pop(self.number, None)
        feed = self.link.net.cluster.feeds[self.link.worker].followers
        for its_id in feed.ids():
            if its_id.number == self.number:
                feed.leave(its_id)


class Net:
    """In place of `ClusterReads`: what the gateway knows, and its links."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.number = 0
        self.links = [Link(self, worker) for worker in range(2)]
        self.changed = asyncio.Event()
        self.known: Owners | None = None
        self.tell()

    def tell(self) -> None:
        """The gateway hears of the present generation."""
        cluster = self.cluster
        addresses, loaded = {0: "a/1", 1: "b/1"}, (cluster.generation - 1, cluster.loaded)
        self.known = Owners(cluster.generation, dict(cluster.owners), addresses, 1, loaded, cluster.recorded)
        self.changed.set()
        self.changed = asyncio.Event()

    def link(self, known: Owners, worker: int) -> Link:
        return self.links[worker]

    def lose(self, worker: int) -> None:
        """A link breaks; the next use finds a new one."""
        link, self.links[worker] = self.links[worker], Link(self, worker)
        for number, heard in list(link.heard.items()):
            self.cluster.sent.pop((worker, number), None)
            Hold(link, number).leave()
            heard(None)

    def deliver(self, n: int) -> None:
        """Some messages arrive."""
        cluster = self.cluster
        for feed in cluster.feeds:
            feed.run()
        for _ in range(n):
            waiting = [each for each, messages in cluster.sent.items() if messages]
            if not waiting:
                return
            worker, number = cluster.rng.choice(waiting)
            message = cluster.sent[worker, number].popleft()
            heard = self.links[worker].heard.get(number)
            if heard is not None:
                heard(msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=type(message)))


class Copy:
    """What a follower has been given, held against the states."""

    def __init__(self, states: list[State], after: int) -> None:
        self.states = states
        self.through = after
        self.began: int | None = None
        self.state: State = {}
        self.epochs: list[int] = []
        self.told: SnapshotTooOld | None = None

    async def follow(self, source: ClusterChanges, after: int) -> None:
        try:
            async for given in source.follow("account", None, after):
                self._take(given.through, given.epochs)
        except SnapshotTooOld as error:
            self.told = error

    def _take(self, through: int, epochs: list[EpochChanges]) -> None:
        if self.began is None:
            assert not epochs
            self.began = through
            self.state = dict(self.states[through]) if through >= 0 else {}
        for epoch in epochs:
            assert self.through < epoch.epoch <= through, "an epoch has come twice, or out of order"
            self.through = epoch.epoch
            self.epochs.append(epoch.epoch)
            keys = [key for table in epoch.tables for key in table.keys]
            assert len(keys) == len(set(keys)), "a part has come twice"
            for table in epoch.tables:
                for key, value in zip(table.keys, table.values, strict=True):
                    self.state[key] = msgspec.msgpack.decode(value or b"")
            assert self.state == self.states[epoch.epoch], f"not the state at the end of epoch {epoch.epoch}"
        self.through = through
        assert through < 0 or self.state == self.states[through], f"a gap before the end of epoch {through}"


async def history(seed: int) -> tuple[int, int]:
    """One random history; how many epochs a follower was given, and how many followers were told."""
    rng = Random(seed)
    cluster = Cluster(rng)
    net = Net(cluster)
    source = ClusterChanges(cast(ClusterReads, net))
    copies: list[tuple[Copy, asyncio.Task[None]]] = []

    def begin(after: int) -> None:
        copy = Copy(cluster.states, after)
        copies.append((copy, asyncio.ensure_future(copy.follow(source, after))))

    async def settle(rounds: int) -> None:
        for _ in range(rounds):
            net.deliver(rng.randrange(4))
            await asyncio.sleep(0)

    begin(FROM_NOW)
    await settle(5)
    while len(cluster.script) < EPOCHS:
        cluster.write(lambda: net.deliver(rng.randrange(3)))
        await settle(rng.randrange(4))
        kind = rng.random()
        if kind < 0.08:
            cluster.begin(cluster.generation + 1)
            await settle(rng.randrange(6))
            net.tell()
        elif kind < 0.14:
            net.lose(rng.randrange(2))
        elif kind < 0.24:
            begin(rng.choice([FROM_NOW, rng.randrange(-1, len(cluster.script))]))
    net.tell()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while any(not task.done() and copy.through < EPOCHS - 1 for copy, task in copies):
            net.deliver(10)
            await asyncio.sleep(0)
    for _, task in copies:
        task.cancel()
    for each in await asyncio.gather(*[task for _, task in copies], return_exceptions=True):
        if isinstance(each, AssertionError):
            raise each
    return max(len(copy.epochs) for copy, _ in copies), sum(copy.told is not None for copy, _ in copies)


def histories() -> tuple[int, int]:
    """(epochs given, followers told) over all seeds."""
    found = [asyncio.run(history(seed)) for seed in range(SEEDS)]
    return sum(given for given, _ in found), sum(told for _, told in found)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "RETRY_SECONDS", 0.0)


@plain_form
def test_a_follower_gets_each_epoch_once_and_whole_or_is_told() -> None:
    given, told = histories()
    assert given > SEEDS * EPOCHS / 3, given
    assert 0 < told < SEEDS * 3, told


def an_epoch_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = ChangeLog.behind
    monkeypatch.setattr(ChangeLog, "behind", lambda self, after, most: behind(self, after + (after == 20), most))


def an_epoch_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = ChangeLog.behind
    monkeypatch.setattr(ChangeLog, "behind", lambda self, after, most: behind(self, after - 1, most))


def a_part_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.cluster.gateway.epoch_merge.min", max, raising=False)


def values_are_of_a_later_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(slots: Any, versions: Any, epoch: int) -> EpochChanges:
        found = changes_of(slots, versions, epoch)
        return EpochChanges(epoch - 1, found.n_bytes, found.tables)

    monkeypatch.setattr("styx.worker.generation.changes_of", late)


def what_is_not_kept_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def begins(self: Any, follower: Any, log: ChangeLog, begun: int) -> bool:
        follower.after = max(follower.after, begun)
        return True

    monkeypatch.setattr(followers.Followers, "_begins", begins)


def a_generation_keeps_nothing_of_what_it_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says that it has it."""
    begin = ChangeLog.begin
    monkeypatch.setattr(ChangeLog, "begin", lambda self, begun, closed: begin(self, -1, closed))
    monkeypatch.setattr("styx.worker.generation.changes_of", lambda slots, versions, epoch: EpochChanges(epoch, 0, []))


@plain_form
@pytest.mark.parametrize(
    "mutation",
    [
        an_epoch_is_lost,
        an_epoch_comes_twice,
        a_part_is_not_waited_for,
        values_are_of_a_later_epoch,
        what_is_not_kept_is_passed_over,
        a_generation_keeps_nothing_of_what_it_runs_again,
    ],
    ids=lambda mutation: mutation.__name__,
)
def test_each_rule_is_needed(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    with pytest.raises((AssertionError, KeyError)):
        histories()

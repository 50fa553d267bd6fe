"""A cluster as a replica sees it, in a few lines: generations that end, epochs that run again, snapshots, deployments;
and a replica's `History` beside it, which hears of everything late.

What each generation made of each epoch is written down. So what is shown can be held against the generation that the
replica says it is of.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from styx.model.changes import EpochChanges, Given, TableChanges
from styx.replica.history import Began, History
from styx.replica.state import EpochState, whole

LARGE = 2**40
KEYS = [f"k{at}" for at in range(4)]
SLOTS = 2
MANIFESTS_KEPT = 2
Content = dict[str, bytes]


class Snapshot(NamedTuple):
    generation: int
    epoch: int
    version: int
    content: Content


@dataclass
class Generation:
    """What it began with, what it made of each epoch from `loaded` on, and from which on its workers have changes."""

    began: Began
    states: dict[int, Content]
    kept_from: int
    changes: dict[int, Content] = field(default_factory=dict)


class World:
    """`closed` is the last epoch, `answered` the last one whose replies are durable."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.closed = 0
        self.answered = 0
        self.written = 0
        self.version = 1
        self.kept: list[Snapshot] = [Snapshot(1, 0, 1, {})]
        self.void: list[Snapshot] = []
        self.generations = {1: Generation(Began(1, 1, (-1, -1), -1), {0: {}}, 0)}
        self.number = 1
        self.counts = dict.fromkeys(("cut", "planned", "converted", "deployed", "back", "dropped", "crash"), 0)

    @property
    def now(self) -> Generation:
        return self.generations[self.number]

    def run(self) -> None:
        """An epoch closes."""
        self.closed += 1
        self._make(self.closed)
        self.answered = max(self.answered, self.closed - self.rng.randrange(2))

    def _make(self, epoch: int, changes: Content | None = None) -> None:
        now = self.now
        if changes is None:
            changes = {key: self._value() for key in self.rng.sample(KEYS, self.rng.randrange(3))}
        now.changes[epoch] = changes
        now.states[epoch] = {**now.states[epoch - 1], **changes}

    def _value(self) -> bytes:
        self.written += 1
        return b"%d" % self.written

    def snapshot(self) -> None:
        """Its parts wait for the replies."""
        self.answered = self.closed
        self._stored(Snapshot(self.number, self.closed, self.version, self.now.states[self.closed]))

    def _stored(self, snapshot: Snapshot) -> None:
        known = [each for each in self.kept if each[:2] != snapshot[:2]]
        self.kept = [*known, snapshot][-MANIFESTS_KEPT:]

    def drop(self) -> None:
        """The workers' logs were full."""
        self.counts["dropped"] += 1
        self.now.kept_from = self.closed

    def crash(self) -> None:
        """The recorded epochs run again; the last one otherwise, if nobody can know how it ended."""
        self.counts["crash"] += 1
        newest, before = self.kept[-1], self.now
        self._next(newest, self.closed, self.version, newest.content)
        for epoch in range(newest.epoch + 1, self.closed + 1):
            changes = before.changes[epoch]
            if epoch == self.closed > self.answered and changes and self.rng.random() < 0.7:
                self.counts["cut"] += 1
                changes = dict(list(changes.items())[1:])
            self._make(epoch, changes)
        self.answered = self.closed

    def plan(self) -> None:
        """A change of the workers, or of the app, which may convert all state."""
        self.counts["planned"] += 1
        self.snapshot()
        newest = self.kept[-1]
        kind = self.rng.random()
        content, kept_from = newest.content, newest.epoch
        if kind < 0.6:
            self.counts["deployed"] += 1
            self.version += 1
        if kind < 0.3:
            self.counts["converted"] += 1
            content, kept_from = {key: value + b"'" for key, value in content.items()}, newest.epoch + 1
        self._next(newest, newest.epoch, self.version, content)
        if kind < 0.3:
            self.run()
            self.snapshot()
        self.now.kept_from = kept_from

    def back(self) -> bool:
        """It begins on an older snapshot, and knows nothing of what came behind it; the store still has that. Whether
        it could.
        """
        oldest = self.kept[0]
        if oldest.version != self.version or oldest.epoch == self.closed:
            return False
        self.counts["back"] += 1
        self.closed = self.answered = oldest.epoch
        self.kept, self.void = [oldest], [self.kept[-1]]
        self._next(oldest, oldest.epoch, self.version, oldest.content)
        return True

    def _next(self, loaded: Snapshot, recorded: int, version: int, content: Content) -> None:
        self.number += 1
        began = Began(self.number, version, (loaded.generation, loaded.epoch), recorded)
        self.generations[self.number] = Generation(began, {loaded.epoch: content}, loaded.epoch)


class Replica:
    """`known` is what it has heard last. `feed` is the generation that it follows, None while it follows none."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.history = History(LARGE)
        self.known: Began | None = None
        self.feed: Generation | None = None
        self.last = -1
        self.refused: set[tuple[int, int]] = set()
        self.taken = 0

    def step(self) -> None:
        """Something that the process does."""
        rng = self.world.rng
        kind = rng.random()
        if kind < 0.3:
            self.known = self.world.now.began
        elif kind < 0.35:
            self.known = None  # the coordinator cannot be reached
        elif kind < 0.5:
            self.look()
        elif self.feed is None:
            self.follow()
        else:
            self.take(rng.randrange(1, 4))
        self.check()

    def hear(self) -> None:
        """It hears at once of the generation that has begun."""
        self.known = self.world.now.began
        self.history.hear(self.known)
        if self.history.newest is None:
            self.feed = None
        self.check()

    def look(self) -> None:
        if self.feed is not None:
            return
        for each in sorted([*self.world.kept, *self.world.void], key=lambda each: each[:2], reverse=True):
            if self.history.wants(self.known, each.generation, each.epoch):
                self.history.begin(self.known, each.generation, made(each))
                return

    def follow(self) -> None:
        world, known = self.world, self.known
        place = None if known is None else self.history.place(known)
        if known is None or place is None or known.generation != world.number:
            return  # workers of another generation say nothing
        if place < world.now.kept_from:
            self.refuse(known, place)
        elif place <= world.closed:
            self.history.goes_on(known)
            self.feed = world.now

    def take(self, most: int) -> None:
        """A worker of a generation that has ended gives what that had closed."""
        feed, current = self.feed, self.history.newest
        assert feed is not None
        assert current is not None
        through = min(max(feed.states), current.epoch + most)
        if through > current.epoch and current.epoch < feed.kept_from:
            self.refuse(feed.began, current.epoch)
            self.feed = None
        elif through > current.epoch:
            self.taken += 1
            self.history.take(
                Given(through, [given(feed, epoch) for epoch in range(current.epoch + 1, through + 1)]), 0.0
            )
        elif feed is not self.world.now or self.world.rng.random() < 0.2:
            self.feed = None

    def refuse(self, now: Began, place: int) -> None:
        assert (now.generation, place) not in self.refused, "it comes again with what was of no use"
        self.refused.add((now.generation, place))
        self.history.refuse(now, place)

    def check(self) -> None:
        history, world = self.history, self.world
        shown = history.shown
        if shown is None:
            self.last = -1
            return
        generation = world.generations[history.shown_in]
        assert content(shown) == generation.states[shown.epoch], f"epoch {shown.epoch} of {generation.began.generation}"
        assert shown.epoch >= self.last, "it goes back"
        self.last = shown.epoch
        if history.shown_in == world.number or self.feed is world.now:
            assert shown.epoch <= world.closed, "an epoch of another history"
        if history.shown_in == world.number:
            assert shown.version == world.version


def given(feed: Generation, epoch: int) -> EpochChanges:
    tables = [
        TableChanges(KEYS.index(key) % SLOTS, "account", [key], [value]) for key, value in feed.changes[epoch].items()
    ]
    return EpochChanges(epoch, 0, tables)


def made(snapshot: Snapshot) -> EpochState:
    contents = {
        slot: {"account": {key: value for key, value in snapshot.content.items() if KEYS.index(key) % SLOTS == slot}}
        for slot in range(SLOTS)
    }
    return whole(snapshot.epoch, snapshot.version, 0.0, contents, LARGE)  # type: ignore[arg-type]


def content(state: EpochState) -> Content:
    return {
        key: value
        for tables in state.slots.values()
        for table in tables.values()
        for key, value in table.entries().items()
    }

"""What a replica shows, in thousands of random histories: always a state that a generation had, never an older one, and
in the end the newest. Each rule, broken on purpose, is caught.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from styx.model.changes import Given
from styx.replica import history
from styx.replica.history import Began, History
from styx.replica.state import EpochState
from tests.replica.feed_world import Replica, World, content

SEEDS = 1_000
STEPS = 150


def one(seed: int) -> tuple[Replica, World]:
    """A random history, at the end of which nothing happens any more until the replica has the newest state."""
    rng = Random(seed)
    world = World(rng)
    replica = Replica(world)
    happens: list[Callable[[], None]] = [world.snapshot, world.crash, world.plan, world.drop]
    going_back = rng.random() < 0.2
    for _ in range(STEPS):
        if rng.random() < 0.35:
            world.run()
        if rng.random() < 0.1:
            rng.choice(happens)()
        if going_back and rng.random() < 0.02 and world.back():
            replica.hear()  # of one it does not hear of, nobody could tell it later
        replica.step()
    world.snapshot()
    for _ in range(300):
        replica.step()
        shown = replica.history.shown
        if shown is not None and shown.epoch == world.closed and replica.history.shown_in == world.number:
            assert content(shown) == world.now.states[world.closed]
            return replica, world
    raise AssertionError("it does not get on")


def many() -> Counter[str]:
    """How often things have happened."""
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        replica, world = one(seed)
        counts.update(world.counts)
        counts["taken"] += replica.taken
    return counts


def test_what_is_shown_is_a_state_that_there_was_and_in_the_end_the_newest() -> None:
    counts = many()
    for what in ("cut", "planned", "converted", "deployed", "back", "dropped", "crash"):
        assert counts[what] > 60, what
    assert counts["taken"] > 16_000


# Each rule -----------------------------------------------------------------------------------------------------------


def the_last_epoch_counts_as_final(monkeypatch: pytest.MonkeyPatch) -> None:
    take = History.take

    def taken(self: History, given: Given, now_s: float) -> bool:
        newer = take(self, given, now_s)
        self._floor = self._current
        return newer

    monkeypatch.setattr(History, "take", taken)


def any_snapshot_of_the_last_epoch_makes_it_final(monkeypatch: pytest.MonkeyPatch) -> None:
    place = History.place

    def placed(self: History, now: Began) -> int | None:
        current = self._current
        loaded = (self.generation, now.loaded[1]) if current is not None else now.loaded
        return place(self, now._replace(loaded=loaded))

    monkeypatch.setattr(History, "place", placed)


def it_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def show(self: History, state: EpochState) -> None:
        self.shown, self.shown_in = state, self.generation

    monkeypatch.setattr(History, "_show", show)


def it_goes_on_from_any_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    wants = History.wants

    def wanted(self: History, now: Began | None, generation: int, epoch: int) -> bool:
        return wants(self, None if now is None else now._replace(loaded=(generation, epoch)), generation, epoch)

    monkeypatch.setattr(History, "wants", wanted)


def what_was_only_shown_is_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(self: History, now: Began | None, generation: int, state: EpochState) -> None:
        self.generation = generation
        self._current = self._floor = state
        self._show(state)

    monkeypatch.setattr(History, "begin", begin)


def another_history_stays_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(History, "hear", lambda self, now: None)


def a_later_generation_goes_on_in_the_older_state(monkeypatch: pytest.MonkeyPatch) -> None:
    def goes_on(self: History, now: Began) -> None:
        self.generation = now.generation
        if self._current is not None:
            self._show(self._current)

    monkeypatch.setattr(History, "goes_on", goes_on)


def the_version_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = History.goes_on

    def same(self: History, now: Began) -> None:
        assert self._floor is not None
        goes_on(self, now._replace(version=self._floor.version))

    monkeypatch.setattr(History, "goes_on", same)


def what_was_refused_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = History.refuse
    monkeypatch.setattr(History, "refuse", lambda self, now, place: refuse(self, now, -2))


def the_changes_of_the_last_epoch_alone_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    made = history._changes
    monkeypatch.setattr(history, "_changes", lambda epochs: made(list(epochs)[-1:]))


@pytest.mark.parametrize(
    "mutation",
    [
        the_last_epoch_counts_as_final,
        any_snapshot_of_the_last_epoch_makes_it_final,
        it_goes_back,
        it_goes_on_from_any_snapshot,
        what_was_only_shown_is_gone_on_from,
        another_history_stays_shown,
        a_later_generation_goes_on_in_the_older_state,
        the_version_stays,
        what_was_refused_is_forgotten,
        the_changes_of_the_last_epoch_alone_are_taken,
    ],
    ids=lambda mutation: mutation.__name__,
)
def test_each_rule_is_needed(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    with pytest.raises(AssertionError):
        many()

"""A cluster that was restored from a backup counts generations and epochs on from there, so it gives numbers again that
a replica has heard of. What the replica has is of another history then, whatever the numbers say.
"""

from __future__ import annotations

import pytest

from styx.cluster.wire import Owners
from styx.model.changes import EpochChanges, Given, TableChanges
from styx.replica import history
from styx.replica.history import Began, History, began
from styx.replica.state import EpochState, whole

LARGE = 2**40
LOADED = (5, 100)
"""The snapshot of which there is a backup."""


def generation(number: int, recorded: int, workers: dict[int, str]) -> Began:
    return began(Owners(number, dict.fromkeys(range(2), min(workers)), workers, 1, LOADED, recorded))


def state(epoch: int) -> EpochState:
    return whole(epoch, 1, 0.0, {0: {"account": {"a": b"%d" % epoch}}}, LARGE)


def followed(now: Began, through: int) -> History:
    """One that has followed this generation up to the end of an epoch."""
    found = History(LARGE)
    found.begin(now, 5, state(100))
    assert found.place(now) == 100
    found.goes_on(now)
    for epoch in range(101, through + 1):
        found.take(Given(epoch, [EpochChanges(epoch, 0, [TableChanges(0, "account", ["a"], [b"%d" % epoch])])]), 0.0)
    assert found.shown is not None
    assert found.shown.epoch == through
    return found


@pytest.mark.parametrize("recorded", [100, 104, 300])
def test_another_generation_has_the_number_of_the_one_that_is_followed(recorded: int) -> None:
    """Also with the same beginning, and however far it has come before the replica hears of it."""
    before = generation(6, 104, {71: "a/1", 72: "b/1"})
    found = followed(before, 120)
    found.hear(before)  # as from a coordinator whose connection was lost
    assert found.place(before) == 120
    other = generation(6, recorded, {81: "a/2", 82: "b/2"})
    assert found.place(other) is None, "changes of another history are laid over the state"
    assert found.shown is None
    assert found.wants(other, *LOADED)
    found.begin(other, 5, state(100))
    assert found.place(other) == 100


def test_it_has_the_number_of_an_older_one() -> None:
    """What was refused in a generation that had a higher number does not count in the new history."""
    older, newer = generation(6, 104, {71: "a/1"}), generation(7, 120, {72: "b/1"})
    found = followed(older, 120)
    found.hear(newer)
    found.refuse(newer, 119)
    found.hear(generation(6, 104, {71: "a/1"}))  # an older coordinator, which does not know that it was replaced
    assert found.shown is not None
    other = generation(6, 100, {81: "a/2"})
    found.hear(other)
    assert found.shown is None
    assert found.wants(other, *LOADED)
    found.begin(other, 5, state(100))
    assert found.place(other) == 100


def test_few_generations_are_kept_in_mind() -> None:
    found = History(LARGE)
    for number in range(2 * history.HEARD_MAX):
        found.hear(generation(number, 100, {number: "a/1"}))
    assert len(found._heard) == history.HEARD_MAX
    found.begin(None, 5, state(100))
    found.hear(generation(2 * history.HEARD_MAX - 1, 100, {7: "a/1"}))
    assert found.shown is None

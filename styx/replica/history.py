"""Which states a replica that follows closed epochs may show, and where it goes on in which generation. Pure: it is
told what a generation began with, which snapshots there are, and what the workers give.

The state of an epoch goes on in three ways:

- *In the same generation* behind itself: what a generation has closed is not run again while it lasts.
- *In a later generation* behind its `floor`, the newest state that every later generation has, too. The end of an
  epoch behind which another one has closed is such a state, because the records of the later one are durable. So is
  the end of the epoch whose snapshot the later generation has begun on. The end of the last epoch that a generation
  gave is not: if the generation ended before the replies of that epoch were durable, its replay may end a function that
  has ended in time before. So what came behind the floor is taken once more, from the generation that counts.
- *From a snapshot* that the generation has stored or begun on, if the workers have not kept what comes next. Another
  one may be of a history that has not become this one's.

What is shown never goes back, and is always one state as a whole. If a later generation began before the epoch that is
shown, that epoch is of another history, as after a restore from a backup: then nothing is shown until there is a state
of the generation's own. The same is true if a number that was heard of is that of another generation now: a restored
cluster counts on from its backup. Its workers tell, because coordinators give no worker the number of another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from styx.cluster.wire import Owners
from styx.model.changes import EpochChanges, Given
from styx.replica.state import EpochState, SlotChange, after, is_shown

HEARD_MAX: Final = 100
"""Generations of which it is known what was heard of them: the last ones."""


class Began(NamedTuple):
    """A generation, the app's version in it, and what it began with, as in `Owners`; `workers` are its workers."""

    generation: int
    version: int
    loaded: tuple[int, int]
    recorded: int
    workers: tuple[int, ...] = ()


def began(known: Owners) -> Began:
    """What the coordinator says of a generation."""
    return Began(known.generation, known.version, known.loaded, known.recorded, tuple(sorted(known.addresses)))


class History:
    """`shown` is the state that queries see, None for none, and `shown_in` the generation that it is of. `generation`
    is the one that gave the newest state, which may be of an epoch before.

    Memory is limited as for `after`.
    """

    def __init__(self, bytes_max: int) -> None:
        self.shown: EpochState | None = None
        self.generation = -1
        self._bytes_max = bytes_max
        self._current: EpochState | None = None
        self._floor: EpochState | None = None
        self._refused = (-1, -1)
        self._heard: dict[int, Began] = {}
        self.shown_in = -1

    @property
    def newest(self) -> EpochState | None:
        """The state that the next epochs are added to; None while a snapshot is wanted."""
        return self._current

    @property
    def caught_up(self) -> bool:
        """Whether the newest state is shown; else one of an epoch that comes again is."""
        return self._current is not None and self._current is self.shown

    # Snapshots ---------------------------------------------------------------------------------------------

    def wants(self, now: Began | None, generation: int, epoch: int) -> bool:
        """Whether to go on from the snapshot of a generation and an epoch, in the generation `now`, which has stored it
        or has begun on it; None if nobody tells which one runs: then it is only shown.
        """
        if now is None:
            return generation >= self.generation and (self.shown is None or epoch > self.shown.epoch)
        if generation != now.generation and (generation, epoch) != now.loaded:
            return False
        if self._current is not None:
            return epoch > self._current.epoch
        return (now.generation, epoch) > self._refused

    def begin(self, now: Began | None, generation: int, state: EpochState) -> None:
        """Takes a snapshot that is wanted."""
        self.generation = generation
        self._current = self._floor = None if now is None else state
        self._show(state)

    # Generations -------------------------------------------------------------------------------------------

    def hear(self, now: Began) -> None:
        """This generation runs. If it began before the epoch that is shown, that one is of another history; if another
        generation had its number, all that is known is.
        """
        if self._heard.setdefault(now.generation, now) != now:
            self._heard = {now.generation: now}
            self.shown = self._current = self._floor = None
            self.generation = self.shown_in = -1
            self._refused = (-1, -1)
        elif now.generation > self.shown_in and self.shown is not None and now.recorded < self.shown.epoch:
            self.shown = self._current = self._floor = None
        while len(self._heard) > HEARD_MAX:
            del self._heard[min(self._heard)]

    def place(self, now: Began) -> int | None:
        """The epoch behind which the changes of this generation are wanted. None: a snapshot is wanted before, or a
        later generation.
        """
        self.hear(now)
        if self._current is None or self._floor is None or now.generation < self.generation:
            return None
        if now.generation == self.generation:
            return self._current.epoch
        if now.loaded == (self.generation, self._current.epoch):
            self._floor = self._current
        return self._floor.epoch

    def goes_on(self, now: Began) -> None:
        """The workers of this generation have what comes behind `place`, so they give it."""
        assert self._current is not None, "there is a place"
        assert self._floor is not None, "there is a place"
        if now.generation != self.generation:
            self._current, self.generation = self._floor, now.generation
        if now.version != self._current.version:
            # Nothing was converted: there would be a gap. What the older version stored, the newer one can read.
            self._current = replace(self._current, version=now.version)
            self._floor = replace(self._floor, version=now.version)
        self._show(self._current)

    def refuse(self, now: Began, place: int) -> None:
        """They do not: a snapshot of a later epoch than `place` is wanted, as long as this generation runs."""
        self._current = self._floor = None
        self._refused = (now.generation, place)

    def take(self, given: Given, now_s: float) -> bool:
        """Takes whole epochs of the present generation, at `now_s` in seconds since 1970, which counts if a worker's
        clock says later. If it is not known when they closed, the state is as old as before: others may have closed
        behind them long ago. Returns whether there is a newer state. Raises `TooLarge`, and keeps what it had.
        """
        current = self._current
        assert current is not None, "there is a place"
        if given.through <= current.epoch:
            return False
        closed_s = min(given.closed_us / 1e6, now_s) if given.closed_us else current.closed_s
        changes = _changes(each for each in given.epochs if each.epoch < given.through)
        floor = after(current, given.through - 1, current.version, closed_s, changes, self._bytes_max)
        changes = _changes(each for each in given.epochs if each.epoch == given.through)
        self._current = after(floor, given.through, current.version, closed_s, changes, self._bytes_max)
        self._floor = floor
        self._show(self._current)
        return True

    def _show(self, state: EpochState) -> None:
        if self.shown is None or state.epoch >= self.shown.epoch:
            self.shown, self.shown_in = state, self.generation


def _changes(epochs: Iterable[EpochChanges]) -> dict[int, SlotChange]:
    """What they have made of each key that queries see; the later ones count."""
    found: dict[int, SlotChange] = {}
    for epoch in epochs:
        for table in epoch.tables:
            if is_shown(table.name):
                of_slot = found.setdefault(table.slot, SlotChange({}))
                of_slot.delta.setdefault(table.name, {}).update(zip(table.keys, table.values, strict=True))
    return found

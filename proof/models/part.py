"""The part of one transaction on one slot in the lock phase: what it knows of other slots, and a run of it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from proof.models.programs import Call
from proof.models.runner import LIMIT, Failed, Path, Place, Runner, State


class Entry(NamedTuple):
    """A call that another slot has made to this one."""

    chain: Path
    call: Call


class At(NamedTuple):
    """What an entry is known by: its path, and the slot that has made the call.

    When a call has moved, what its old and its new place call overlaps for a round.
    """

    path: Path
    caller: int


class Sent(NamedTuple):
    """A call to another slot, which has it as an `entry`; `place` is where it was made."""

    slot: int
    place: Place
    entry: Entry


@dataclass
class Part:
    """What a slot knows of a transaction: its entries and the results that it has given for them, its calls to other
    slots and the results that it was given for them.

    `allowance` is how many calls the part may make; it is fixed when the lock phase begins.
    """

    allowance: int = 0
    entries: dict[At, Entry] = field(default_factory=dict)
    given: dict[At, int] = field(default_factory=dict)
    sent: dict[Path, Sent] = field(default_factory=dict)
    results: dict[Path, int] = field(default_factory=dict)

    def copy(self) -> Part:
        """A part that changes independently."""
        return replace(
            self, entries={**self.entries}, sent={**self.sent}, given={**self.given}, results={**self.results}
        )


_HERE: Final = -1
"""The caller of a call within the slot, before all slots."""


class _Waits(Exception):
    """A result is missing. The place is behind everything that happens below the call."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place


class PartRun(Runner):
    """One run of a part, in serial order, from its entries.

    `writes` are the new values on this slot, `sent` the calls that it made to other slots, `given` the results of its
    entries, `result` the root's. It may stop before its end, at the place `stop`: with a `failure`, or because it
    `waits` for a result.
    """

    def __init__(self, part: Part, slot: int, n_slots: int, n_keys: int, current: State, state: State) -> None:
        super().__init__(n_keys)
        self.writes: State = {}
        self.sent: dict[Path, Sent] = {}
        self.given: dict[At, int] = {}
        self.result: int | None = None
        self.failure: Failed | None = None
        self.waits = False
        self.stop: Place | None = None
        self._part = part
        self._slot = slot
        self._n_slots = n_slots
        self._layers = (self.writes, current, state)
        self._left = part.allowance
        self._made: dict[Path, list[Call]] = {}
        # Serial order; of an entry and a call of this slot at one path, the latter is newer. The number tells calls of
        # this slot at one path apart: an invocation may run here twice, as an entry and as a call of this slot.
        self._due = [(entry.chain, *at, 0, entry.call) for at, entry in part.entries.items()]
        self._pushed = 0

    def run(self) -> None:
        """Runs the part to its end, or until it stops."""
        heapq.heapify(self._due)
        try:
            while self._due:
                self._run_due()
        except Failed as failed:
            self.failure, self.stop = failed, failed.place
        except _Waits as waits:
            self.waits, self.stop = True, waits.place

    def reached(self, place: Place) -> bool:
        """Whether the run came to this place, or would have."""
        return self.stop is None or place < self.stop

    def read(self, chain: Path, key: int) -> int:
        """As in `Runner`."""
        return next((layer[key] for layer in self._layers if key in layer), 0)

    def write(self, chain: Path, key: int, value: int) -> None:
        """As in `Runner`."""
        self.writes[key] = value

    def called(self, chain: Path, path: Path, index: int, call: Call) -> int:
        """As in `Runner`."""
        if not self._left:
            raise Failed(Place(chain, (*path, index)), LIMIT, limit=True)
        self._left -= 1
        self._made[path].append(call)
        child = (*path, index)
        if self._is_here(call):
            return self._start(chain, child, call) if call.synchronous else 0
        entry = Entry(chain if call.synchronous else child, call)
        self.sent[child] = Sent(call.key % self._n_slots, Place(chain, child), entry)
        return self._awaited(chain, child) if call.synchronous else 0

    def _is_here(self, call: Call) -> bool:
        return call.key % self._n_slots == self._slot

    def _run_due(self) -> None:
        chain, path, caller, _, call = heapq.heappop(self._due)
        if path in self._made:
            return  # made by two slots, of which one is about to withdraw it
        result = self._start(chain, path, call)
        if not path:
            self.result = result
        elif caller != _HERE and call.synchronous:
            self.given[At(path, caller)] = result

    def _start(self, chain: Path, path: Path, call: Call) -> int:
        self._made[path] = []
        result = self.invoke(chain, path, call)
        for index, made in enumerate(self._made[path]):
            if not made.synchronous and self._is_here(made):
                child = (*path, index)
                self._pushed += 1
                heapq.heappush(self._due, (child, child, _HERE, self._pushed, made))
        return result

    def _awaited(self, chain: Path, path: Path) -> int:
        # The calls back to this slot run within the wait, as in the serial execution.
        while self._due and self._due[0][0] == chain and self._due[0][1][: len(path)] == path:
            self._run_due()
        if path not in self._part.results:
            raise _Waits(Place(chain, (*path[:-1], path[-1] + 1)))
        return self._part.results[path]

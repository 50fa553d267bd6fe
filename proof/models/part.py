"""The part of one transaction on one slot in the lock phase: what it knows of other slots, and a run of it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from proof.models.programs import Call
from proof.models.runner import LIMIT, Failed, Path, Place, Runner, State


class Entry(NamedTuple):
    """A call that the slot `caller` has made to this one."""

    chain: Path
    call: Call
    caller: int


class Sent(NamedTuple):
    """A call to another slot, which has it as an entry."""

    slot: int
    chain: Path
    call: Call


@dataclass
class Part:
    """What a slot knows of a transaction, by call path.

    `given` are the results that the slot has sent for its entries, `results` those that it was given for its calls.
    `allowance` is how many calls the part may make; it is fixed when the lock phase begins.
    """

    allowance: int = 0
    entries: dict[Path, Entry] = field(default_factory=dict)
    sent: dict[Path, Sent] = field(default_factory=dict)
    given: dict[Path, int] = field(default_factory=dict)
    results: dict[Path, int] = field(default_factory=dict)

    def copy(self) -> Part:
        """A part that changes independently."""
        return replace(
            self, entries={**self.entries}, sent={**self.sent}, given={**self.given}, results={**self.results}
        )


@dataclass
class _Frame:
    made: list[Call] = field(default_factory=list)
    open: bool = True


class _Waits(Exception):
    """A result is missing."""


class PartRun(Runner):
    """One run of a part, in serial order, from its entries.

    `writes` are the new values on this slot, `sent` the calls that it made to other slots, `given` the results of its
    entries, `result` the root's. It may stop before its end: at a `failure`, or because it `waits` for a result.
    """

    def __init__(self, part: Part, slot: int, n_slots: int, n_keys: int, current: State, state: State) -> None:
        super().__init__(n_keys)
        self.writes: State = {}
        self.sent: dict[Path, Sent] = {}
        self.given: dict[Path, int] = {}
        self.result: int | None = None
        self.failure: Failed | None = None
        self.waits = False
        self._part = part
        self._slot = slot
        self._n_slots = n_slots
        self._layers = (self.writes, current, state)
        self._left = part.allowance
        self._frames: dict[Path, _Frame] = {}
        # By chain and path; of an entry and a call of this slot at one path, the latter is newer.
        self._due = [(entry.chain, path, True, entry.call) for path, entry in part.entries.items()]

    def run(self) -> None:
        """Runs the part to its end, or until it stops."""
        heapq.heapify(self._due)
        try:
            while self._due:
                self._run_due()
        except Failed as failed:
            self.failure = failed
        except _Waits:
            self.waits = True

    def keeps(self, path: Path) -> bool:
        """Whether a sent call that this run has not made stands: the run stopped before its caller could make it."""
        child = path
        while child and (self.waits or self.failure is not None):
            caller, index = child[:-1], child[-1]
            frame = self._frames.get(caller)
            if frame is not None:
                if index >= len(frame.made):
                    return frame.open
                return child != path and self._is_here(frame.made[index])  # a call within the slot, not yet run
            if caller in self._part.entries:
                return True
            child = caller
        return False

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
        self._frames[path].made.append(call)
        child = (*path, index)
        if self._is_here(call):
            return self._start(chain, child, call) if call.synchronous else 0
        self.sent[child] = Sent(call.key % self._n_slots, chain if call.synchronous else child, call)
        return self._awaited(chain, child) if call.synchronous else 0

    def _is_here(self, call: Call) -> bool:
        return call.key % self._n_slots == self._slot

    def _run_due(self) -> None:
        chain, path, is_entry, call = heapq.heappop(self._due)
        if is_entry and path in self._frames:
            return  # this slot has made the call itself; the entry is about to be withdrawn
        result = self._start(chain, path, call)
        if not path:
            self.result = result
        elif is_entry and call.synchronous:
            self.given[path] = result

    def _start(self, chain: Path, path: Path, call: Call) -> int:
        frame = self._frames[path] = _Frame()
        result = self.invoke(chain, path, call)
        frame.open = False
        for index, made in enumerate(frame.made):
            if not made.synchronous and self._is_here(made):
                child = (*path, index)
                heapq.heappush(self._due, (child, child, False, made))
        return result

    def _awaited(self, chain: Path, path: Path) -> int:
        # The calls back to this slot run within the wait, as in the serial execution.
        while self._due and self._due[0][0] == chain and self._due[0][1][: len(path)] == path:
            self._run_due()
        if path not in self._part.results:
            raise _Waits
        return self._part.results[path]

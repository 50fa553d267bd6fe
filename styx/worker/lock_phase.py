"""The lock phase: transactions in conflict are run again, in TID order, from their cached call graphs.

A worker is one thread, so "locks in TID order" *is* "run in TID order", and there is no lock table. Each slot
re-runs its own cached invocations of all conflicting transactions on current state, speculating that all commit.
No call is sent: an emitted call is compared with the cached one. A transaction *fails* on a slot if it raises,
or *deviates*: a call to another slot changed, or a synchronous result that another slot was given would change.
Locality is by slot, never by worker, so that a replay on another placement decides the same. Paper sections 6.2
and 6.3.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from typing import Any, Final

import msgspec

from styx.native.compiled import FirstSteps
from styx.native.interpreted import native
from styx.protocol.frames import Failure
from styx.worker.footprint import Footprint, Writes
from styx.worker.invocation import Running
from styx.worker.notes import Notes
from styx.worker.own_variables import OwnVariables
from styx.worker.rerun import Rerun
from styx.worker.slot import Slot
from styx.worker.unchanged_rerun import unchanged_rerun

_CUT: Final = Failure(b"", b"", True, "aborted", "", "")


@native
class Outcome(msgspec.Struct, eq=False, frozen=True, gc=False):
    """How a transaction's part on one slot ended. On the root slot, `result` is the root function's encoded result."""

    failure: Failure | None
    result: bytes | None
    writes: Writes


NOT_RUN: Final = Outcome(None, None, {})
"""The outcome of a transaction that took no part in the round."""


class SlotLockPhase:
    """The conflicting transactions of one slot; `outcomes`, by TID, is complete once a round is `done`.

    Transactions in `without` are left out. `cut` is one set for all slots of the worker: the TIDs of transactions with
    a function that the watchdog interrupted. The lock phase begins anew without them, so no other slot runs them.
    """

    def __init__(
        self,
        slot: Slot,
        tids: Container[int],
        large: Container[int],
        running: Running,
        without: Collection[int] = (),
        notes: Notes | None = None,
        cut: set[int] | None = None,
    ) -> None:
        self._slot = slot
        self._notes = notes
        self._large = large
        self._queue: list[Footprint] = [slot.footprints[tid] for tid in sorted(slot.footprints) if tid in tids]
        self._spread = {footprint.tid for footprint in self._queue if footprint.spread}
        self._excluded: set[int] = set(without)
        self._running = running
        self.cut: set[int] = set() if cut is None else cut
        self._current: Writes = {}
        self._next = 0
        self._first_steps = FirstSteps()
        self._variables = OwnVariables()
        self.outcomes: dict[int, Outcome] = {}

    @property
    def done(self) -> bool:
        """Whether the round is over on this slot."""
        return self._next == len(self._queue)

    def run(self, invocations: int) -> int:
        """Continues the round in TID order for about `invocations` invocations. Returns how many of these are left."""
        self._running.cut = False
        while self._next < len(self._queue) and invocations > 0:
            invocations = self._variables.run(self._run, invocations)
        return max(0, invocations)

    def _run(self, invocations: int) -> int:
        queue, slot, current, outcomes = self._queue, self._slot, self._current, self.outcomes
        variables = self._variables.shared
        running = self._running
        while self._next < len(queue) and invocations > 0 and not len(variables):
            footprint = queue[self._next]
            self._next += 1
            tid = footprint.tid
            if tid in self._excluded or (self.cut and tid in self.cut):
                continue
            invocations -= len(footprint.invocations)
            footprint.run_again()
            unchanged = unchanged_rerun(footprint, slot, current, self._first_steps, variables, running)
            if unchanged is not None:
                result, writes = unchanged
                current.update(writes)
                outcomes[tid] = Outcome(None, result, writes)
                continue
            footprint.run_again()
            rerun = Rerun(footprint, slot, current, tid not in self._large, running, self._notes)
            failure = _CUT if running.cut else rerun.run()
            if running.cut:
                running.cut = False
                self.cut.add(tid)
                outcomes[tid] = Outcome(_CUT, None, {})
            elif failure is None:
                current.update(rerun.writes)
                outcomes[tid] = Outcome(None, rerun.result, rerun.writes)
            else:
                outcomes[tid] = Outcome(failure, None, {})
        return invocations

    def roll_back(self, excluded: Container[int]) -> None:
        """Begins the next round just before the lowest of `excluded` that had succeeded here; it runs without them."""
        assert self.done, "a round was decided before it was over"
        start: int | None = None
        for index, footprint in enumerate(self._queue):
            if footprint.tid in excluded and footprint.tid not in self._excluded:
                self._excluded.add(footprint.tid)
                # A transaction that failed on this slot left no writes here, so no later one has to run again.
                if start is None and self.outcomes[footprint.tid].failure is None:
                    start = index
        if start is None:
            return
        self._next = start
        self._current = {}
        for footprint in self._queue[:start]:
            if footprint.tid not in self._excluded:
                self._current.update(self.outcomes[footprint.tid].writes)

    def failures(self) -> list[tuple[int, Failure]]:
        """(TID, failure) of transactions that other slots take part in: all of these slots together decide
        their end.
        """
        return [
            (tid, outcome.failure)
            for tid, outcome in self.outcomes.items()
            if outcome.failure is not None and tid in self._spread and tid not in self._excluded
        ]

    def ended(self, verdicts: Mapping[int, Failure | None]) -> list[tuple[Footprint, Failure | None]]:
        """The transactions that have ended, each with its failure or None. Carried transactions are left out."""
        found: list[tuple[Footprint, Failure | None]] = []
        for footprint in self._queue:
            tid = footprint.tid
            failure = verdicts.get(tid, self.outcomes.get(tid, NOT_RUN).failure)
            if tid in verdicts and failure is None:
                continue
            if failure is None or not failure.deviation:
                found.append((footprint, failure))
        return found

    @property
    def written(self) -> Collection[tuple[str, Any]]:
        """(operator, key) of each entity that the last round wrote."""
        return self._current.keys()

    def commit(self) -> None:
        """Commits the writes of the last round."""
        slot = self._slot
        for (operator, key), value in self._current.items():
            slot.table(operator).write(slot.epoch, key, value)

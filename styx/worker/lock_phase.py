"""The lock phase: transactions in conflict are run again, in TID order, from their cached call graphs.

A worker is one thread, so "locks in TID order" *is* "run in TID order", and there is no lock table. In each round every
slot runs its own parts of all conflicting transactions on current state, speculating that all commit. No call is sent.
If a call to another slot has changed, or a synchronous result that another slot was given, a *patch* goes to that slot
behind the round. It changes its cached call graph, and runs its part again in the next round. A transaction *fails* on
a slot if it raises, or *deviates*: it needs an external call or may exceed the call limit. Locality is by slot, never
by worker, so that a replay on another placement decides the same. Paper sections 6.2 and 6.3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

import msgspec

from styx.model.context import CLOSED
from styx.native.compiled import FirstSteps, calls_more
from styx.native.interpreted import native
from styx.protocol.frames import Failure, Patch
from styx.worker.call_graph import CallGraph, Place, Sent
from styx.worker.changed_entries import ChangedEntries
from styx.worker.footprint import Footprint, Writes
from styx.worker.invocation import Invocation, Running
from styx.worker.notes import Notes
from styx.worker.own_variables import OwnVariables
from styx.worker.rerun import Rerun
from styx.worker.slot import Slot
from styx.worker.unchanged_rerun import single_rerun, unchanged_rerun, written_by
from styx.worker.written_rows import WrittenRows

_tid = attrgetter("tid")
_CUT: Final = Failure(b"", b"", True, "aborted", "", "")


@native
class Outcome(msgspec.Struct, eq=False, frozen=True, gc=False):
    """How a transaction's part on one slot ended. On the root slot, `result` is the root function's encoded result.

    `waits`: it needs a result that is not known yet, and `writes` are those up to there; or another slot has yet to
    withdraw a call.
    """

    failure: Failure | None
    result: bytes | None
    writes: Writes
    waits: bool = False


NOTHING: Final[Writes] = {}
NOT_RUN: Final = Outcome(None, None, NOTHING)
"""The outcome of a transaction that took no part in the round."""


class SlotLockPhase:
    """The conflicting transactions of one slot; `outcomes`, by TID, is complete once a round is `done`. `patches` are
    for other slots, found in the present round, whose number is `number`.

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
        newcomer: Callable[[Patch], Footprint] | None = None,
    ) -> None:
        self.number = 0
        self.patches: list[Patch] = []
        self._slot = slot
        self._newcomer = newcomer
        self._notes = notes
        self._large = large
        self._queue: list[Footprint] = [slot.footprints[tid] for tid in sorted(slot.footprints) if tid in tids]
        self._graphs: dict[int, CallGraph] = {}
        self._spread = {footprint.tid for footprint in self._queue if footprint.spread}
        self._excluded: set[int] = set(without)
        self._running = running
        self.cut: set[int] = set() if cut is None else cut
        self._current: Writes = {}
        slot.current_rows = WrittenRows()
        # Of an app without tables, only what gives a call up reads ranges, and it has done so before.
        self._has_tables = not self._queue or bool(self._queue[0].app.tables) or bool(slot.querying)
        self._next = 0
        # Of the present round, from the second one on: who was patched, what those wrote who are out since, and what
        # has other values so far than at the same place of the round before.
        self._patched: set[int] = set()
        self._left: dict[int, Writes] = {}
        self._changed = ChangedEntries()
        self._queried = False  # in any round
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
        queue, slot, current, outcomes, graphs = self._queue, self._slot, self._current, self.outcomes, self._graphs
        variables, running, changed = self._variables.shared, self._running, self._changed
        again, notes = self.number > 0, self._notes
        while self._next < len(queue) and invocations > 0 and not len(variables):
            footprint = queue[self._next]
            self._next += 1
            tid = footprint.tid
            if tid in self._excluded or (self.cut and tid in self.cut):
                changed.gone(self._left.pop(tid, NOTHING))
                continue
            if again and self._would_read_the_same(footprint):
                continue
            invocations -= len(footprint.invocations) or 1
            if notes is not None:
                notes.forget(footprint)
            footprint.run_again()
            outcome: Outcome | None = None
            if tid not in graphs and _never_run(footprint):
                self._graph(footprint).several = True  # none of its calls is known, so nothing can be unchanged
            elif tid not in graphs:
                unchanged = unchanged_rerun(footprint, slot, current, self._first_steps, variables, running)
                if type(unchanged) is tuple:
                    result, writes = unchanged
                    self._add(writes)
                    outcome = Outcome(None, result, writes)
                elif isinstance(unchanged, Invocation):
                    outcome = self._take(footprint, unchanged)
                if outcome is None:
                    self._run_again(footprint)
                    first = footprint.invocations[0]
                    self._graph(footprint).several |= not first.synchronous  # otherwise that was no attempt
            if outcome is None:
                outcome = self._run_alone(footprint) or self._run_in_general(footprint)
                # More functions than in the execution step, in which a contended one was not at all.
                invocations -= max(0, len(graphs[tid].touched) - (len(footprint.invocations) or 1))
            if again:
                changed.compare(outcomes.get(tid, NOT_RUN).writes, outcome.writes)
            outcomes[tid] = outcome
        return invocations

    def _would_read_the_same(self, footprint: Footprint) -> bool:
        """Whether a part need not run again in this round: it has run in an earlier one, nothing was patched, and no
        entity that it touched is another one since, nor a row in a range that it read. Its outcome then stays.
        """
        tid = footprint.tid
        before = self.outcomes.get(tid)
        if before is None or tid in self._patched or footprint.accesses is not None:
            return False
        graph, changed = self._graphs.get(tid), self._changed.entries
        if footprint.siblings is not None and not changed.isdisjoint(footprint.siblings):
            return False
        if graph is not None:
            for entity in graph.touched:
                if entity in changed:
                    return False
        else:
            for invocation in footprint.invocations:
                if (invocation._spec.operator, invocation._key) in changed:
                    return False
        rows = footprint.rows
        scanned = None if rows is None or not changed else rows.scanned
        if scanned and self._changed.matter_to(scanned, self._current, self._slot, footprint.n_slots):
            return False
        self._changed.same(before.writes)
        self._add(before.writes)
        return True

    def _add(self, writes: Writes) -> None:
        """Higher transactions see these writes from here on."""
        self._current.update(writes)
        if self._has_tables:
            rows = self._slot.current_rows
            assert rows is not None
            rows.add(writes)

    def _run_alone(self, footprint: Footprint) -> Outcome | None:
        """Runs a part that is one invocation, the short way. Returns None if that is not enough."""
        graph = self._graphs[footprint.tid]
        entry = graph.only_entry()
        if entry is None or footprint.accesses is not None or self._running.cut:
            return None
        invocation = single_rerun(footprint, entry, self._slot, self._current, self._first_steps, self._running)
        outcome = None if invocation is None else self._take(footprint, invocation)
        if outcome is None:
            graph.several = True
            self._run_again(footprint)
        return outcome

    def _take(self, footprint: Footprint, invocation: Invocation) -> Outcome | None:
        """Takes the end of a part that was one invocation. Returns None if calls within the slot, or the allowance,
        leave something to the general way.
        """
        here, limits = self._slot.index, footprint.limits
        graph, made, given = self._graph(footprint), dict[bytes, Sent](), dict[tuple[bytes, int], bytes]()
        allowance = graph.allowance
        for index, call in enumerate(invocation._made):
            allowance -= 1 + calls_more(call.params, limits)
            if call.slot == here:
                return None
            made[invocation.step_path(index)] = Sent(call, invocation._chain_id)
        result = invocation._result
        if invocation.synchronous:
            assert result is not None
            allowance -= calls_more(result, limits)
            entry = graph.only_entry()
            if entry is None:
                return None
            given[invocation._path, entry.from_slot] = result
        if allowance < 0:
            return None
        self._send(graph, made, given, None)
        graph.touched = [(invocation._spec.operator, invocation._key)]
        writes = written_by(footprint, invocation)
        self._add(writes)
        return Outcome(None, None if invocation._path else result, writes)

    def _send(
        self,
        graph: CallGraph,
        made: Mapping[bytes, Sent],
        given: Mapping[tuple[bytes, int], bytes],
        stopped: Place | None,
    ) -> None:
        """Makes the patches of a run."""
        patches = graph.ran(self.number, made, given, stopped)
        if patches:
            self.patches += patches
            self._spread.add(graph.footprint.tid)

    def _run_again(self, footprint: Footprint) -> None:
        if self._notes is not None:
            self._notes.forget(footprint)
        footprint.run_again()

    def _run_in_general(self, footprint: Footprint) -> Outcome:
        tid, running, current = footprint.tid, self._running, self._current
        graph = self._graph(footprint)
        rerun = Rerun(graph, self._slot, current, running, self._notes)
        failure = _CUT if running.cut else rerun.run()
        if running.cut:
            running.cut = False
            self.cut.add(tid)
            return Outcome(_CUT, None, {})
        graph.touched = rerun.touched
        self._send(graph, rerun.made, rerun.given, rerun.stopped)
        if failure is not None:
            if failure.deviation or tid not in self._spread:
                return Outcome(failure, None, {})
            # What made it fail may be put right by a patch, and then most of this stays.
            self._add(rerun.writes)
            return Outcome(failure, None, rerun.writes)
        self._add(rerun.writes)
        return Outcome(None, rerun.result, rerun.writes, rerun.waits)

    def _graph(self, footprint: Footprint) -> CallGraph:
        tid = footprint.tid
        graph = self._graphs.get(tid)
        if graph is None:
            growth = 0 if tid in self._large else footprint.limits.invocations_max // (2 * footprint.n_slots)
            graph = self._graphs[tid] = CallGraph(footprint, growth)
        return graph

    def next_round(self, number: int, excluded: Container[int], patches: Iterable[Patch]) -> None:
        """Begins round `number` just before the lowest transaction that a patch is for, or of `excluded` that had
        succeeded here. The round runs without those.
        """
        assert self.done, "a round was decided before it was over"
        self.number = number
        self.patches = []
        self._changed, self._left, self._patched = ChangedEntries(), {}, set()
        start = self._exclude(excluded)
        for patch in patches:
            if patch.tid not in excluded:
                self._patched.add(patch.tid)
                start = min(start, self._apply(patch))
        if start == len(self._queue):
            return
        self._next = start
        self._current = {}
        rows = self._slot.current_rows
        self._queried = self._queried or (rows is not None and rows.queried)
        self._slot.current_rows = WrittenRows()
        for footprint in self._queue[:start]:
            if footprint.tid not in self._excluded:
                self._add(self.outcomes[footprint.tid].writes)
        if self._queried:
            self._changed.before = dict(self._current)

    def _exclude(self, excluded: Container[int]) -> int:
        start = len(self._queue)
        for index, footprint in enumerate(self._queue):
            if footprint.tid in excluded and footprint.tid not in self._excluded:
                self._excluded.add(footprint.tid)
                self._left[footprint.tid] = self.outcomes[footprint.tid].writes
                # Where a transaction left no writes, no later one has to run again.
                outcome = self.outcomes[footprint.tid]
                if outcome.failure is None or outcome.writes:
                    start = min(start, index)
        return start

    def _apply(self, patch: Patch) -> int:
        """Changes the call graph that a patch is for. Returns the transaction's place in the queue."""
        tid, queue = patch.tid, self._queue
        index = bisect_left(queue, tid, key=_tid)
        if index == len(queue) or queue[index].tid != tid:
            assert self._newcomer is not None
            queue.insert(index, self._newcomer(patch))
        self._spread.add(tid)
        self._graph(queue[index]).apply(patch)
        return index

    def failures(self) -> list[tuple[int, Failure]]:
        """(TID, failure) of transactions that other slots take part in: all of these slots together decide
        their end.
        """
        return [
            (tid, outcome.failure)
            for tid, outcome in self.outcomes.items()
            if outcome.failure is not None and tid in self._spread and tid not in self._excluded
        ]

    def changed(self, tid: int) -> bytes | None:
        """The path of the first call to another slot that the transaction's last run here changed."""
        graph = self._graphs.get(tid)
        return None if graph is None else graph.changed

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
        for tid, graph in self._graphs.items():  # a part without one has made exactly the cached calls
            if tid not in self._excluded:
                outcome = self.outcomes[tid]
                assert not outcome.waits, f"transaction {tid} waits for a result at the end of the lock phase"
                assert graph.settled, f"two slots make one call of transaction {tid}, or a result is a guess"
                assert outcome.failure is None or tid not in self._spread, f"transaction {tid} has failed on one slot"
        slot = self._slot
        for (operator, key), value in self._current.items():
            slot.table(operator).write(slot.epoch, key, value)


def _never_run(footprint: Footprint) -> bool:
    """Whether this part is the root of a contended function, which the execution step has left alone."""
    invocations = footprint.invocations
    return len(invocations) == 1 and invocations[0]._left != CLOSED

"""Phase 3: an epoch's local transactions, which the execution step left out, each run once, in TID order, on the state
that all other transactions of the epoch left.

They need no cells of the execution step, no validation and no second run, because nothing of this epoch comes after
them. An exception is final at once. A transaction that cannot go on in its slot leaves no trace, and goes into the next
epoch like any other transaction; it never comes here again. If the watchdog interrupts a function, its transaction is
aborted: it is the first of the transaction that does not end, and everything before it has run. Time decided that, so
the verdict is durable before anything that depends on it.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping

from styx.model.execution import ErrorTriple
from styx.protocol.frames import Failure
from styx.worker.cuts import contradiction
from styx.worker.executor import Executor
from styx.worker.footprint import Footprint
from styx.worker.local_cells import LocalCells
from styx.worker.local_run import LeftSlot, LocalRun
from styx.worker.notes import Notes
from styx.worker.own_variables import OwnVariables
from styx.worker.root import RootTransaction
from styx.worker.serial_run import Ended

Left = dict[tuple[str, str], int]
"""How many transactions have left their slot, by (operator, function)."""


class LocalPhase:
    """The local transactions `roots` of one worker and epoch, in TID order.

    Those in `ended` have recorded outcomes, and do not run. No function of the slots in `decided` may be interrupted: a
    replay knows that it ended. `carried` are the transactions that leave the epoch, and `cut` the verdicts.
    """

    def __init__(
        self,
        executor: Executor,
        roots: list[RootTransaction],
        ended: Mapping[int, ErrorTriple | None],
        decided: Container[int],
        notes: Notes | None,
    ) -> None:
        self.roots = roots
        self.carried: list[RootTransaction] = []
        self.cut: list[tuple[int, ErrorTriple | None]] = []
        self.left: Left = {}
        self._executor = executor
        self._ended = ended
        self._decided = decided
        self._notes = notes
        self._variables = OwnVariables()
        self._runs = LocalRun(executor, notes, self._variables)
        self._cells: dict[int, LocalCells] = {}
        self._next = 0

    @property
    def done(self) -> bool:
        """Whether all have run."""
        return self._next == len(self.roots)

    @property
    def decided(self) -> bool:
        """Whether a replay knows that the function which runs has ended."""
        running = self._next - 1
        return running >= 0 and self.roots[running].slot in self._decided

    def run(self, invocations: int) -> None:
        """Runs transactions with about `invocations` invocations."""
        until = self._runs.calls + invocations
        while self._next < len(self.roots) and self._runs.calls < until:
            self._variables.run(self._run, until)
        self._executor.calls += self._runs.calls - (until - invocations)

    def _run(self, until: int) -> int:
        roots, runs, variables = self.roots, self._runs, self._variables.shared
        while self._next < len(roots) and runs.calls < until and not len(variables):
            root = roots[self._next]
            self._next += 1
            if self._ended and root.tid in self._ended:
                outcome = self._ended[root.tid]
                assert outcome is not None, "a local transaction was recorded as taken out of its epoch"
                root.failure = Failure(b"", b"", False, *outcome)
                continue
            cells = self._cells.get(root.slot)
            if cells is None:
                cells = self._cells[root.slot] = LocalCells(self._executor.slots[root.slot])
            try:
                runs.run(root, cells)
            except Ended as ended:
                cells.undo()
                self._fails(root, ended)
            except LeftSlot as left:
                cells.undo()
                self._leaves(root, left)
                continue
            else:
                cells.keep()
            if self._notes is not None:
                self._note(runs.footprint, root.failure)
        return until

    def _fails(self, root: RootTransaction, ended: Ended) -> None:
        failure = ended.failure
        root.result = None
        root.failure = failure
        if ended.cut:
            if root.slot in self._decided:
                raise contradiction(root.tid, failure)
            self.cut.append((root.tid, (failure.code, failure.type, failure.message)))

    def _leaves(self, root: RootTransaction, left: LeftSlot) -> None:
        function = root.function
        assert function is not None
        root.result = None
        root.local = False
        root.sequential = left.external  # as any transaction that comes to an external call
        self.carried.append(root)
        name = (function.operator, function.name)
        self.left[name] = self.left.get(name, 0) + 1

    def _note(self, footprint: Footprint, failure: Failure | None) -> None:
        if self._notes is not None and (footprint.lines is not None or footprint.raised is not None):
            self._notes.at_lock_end([(footprint, failure)])

    def written(self, slot: int) -> Collection[tuple[str, object]]:
        """(operator, key) of each entity that a transaction wrote on `slot`."""
        cells = self._cells.get(slot)
        return () if cells is None else list(cells.written())

    def commit(self) -> None:
        """Commits the writes."""
        for cells in self._cells.values():
            cells.commit()

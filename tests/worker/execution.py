"""The execution step by hand, for the tests of what follows it: scripted transactions on all slots of one worker.

Uses the real executor, so that footprints and cached call graphs are those of the engine. Never commits.
"""

from __future__ import annotations

from styx.model.limits import Limits
from styx.state.table import NEWEST
from styx.values.codec import decode_plain, encode_strict
from styx.worker.executor import Executor
from styx.worker.footprint import Footprint
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot
from tests.protocol.scripted_app import app, entity, hot, run, slot_digit

OPERATOR = entity.name


class Execution:
    """`run` takes transactions as {TID: (key, script)}; numbers in `state` are committed before."""

    def __init__(self, n_slots: int, state: dict[str, int] | None = None, limits: Limits | None = None) -> None:
        self.n_slots = n_slots
        self.slots = {index: Slot(index) for index in range(n_slots)}
        self.executor = Executor(0, app, limits or Limits(), n_slots)
        self.executor.owners = dict.fromkeys(range(n_slots), 0)
        self.executor.slots = self.slots
        for key, number in (state or {}).items():
            self.slots[slot_digit(key)].state.table(OPERATOR).commit(-1, {key: encode_strict(number)})

    def run(
        self,
        transactions: dict[int, tuple[str, str]],
        sequential: frozenset[int] = frozenset(),
        contended: frozenset[int] = frozenset(),
    ) -> None:
        """Executes them all to their ends; those of a contended function end before they have begun."""
        roots = [
            scripted_root(tid, key, script, contended=tid in contended) for tid, (key, script) in transactions.items()
        ]
        for root in roots:
            root.sequential = root.tid in sequential
        self.executor.begin(0, roots)
        while not self.executor.idle:
            self.executor.run(1)
        assert self.executor.open_roots == 0

    def root(self, tid: int) -> RootTransaction:
        return self.executor.roots[tid]

    def footprint(self, tid: int, slot: int = 0) -> Footprint:
        return self.slots[slot].footprints[tid]

    def result(self, tid: int) -> int | None:
        """What the root function returned in the execution step."""
        root = self.root(tid)
        encoded = self.footprint(tid, root.slot).invocations[0]._result
        return None if encoded is None else int(decode_plain(encoded))

    def numbers(self) -> dict[str, int]:
        """Committed state."""
        states = [slot.state.entities(NEWEST) for slot in self.slots.values()]
        return {key: int(decode_plain(data)) for state in states for (_, key), data in state.items()}


def scripted_root(tid: int, key: str, script: str, contended: bool = False) -> RootTransaction:
    function = app.resolve(OPERATOR, hot if contended else run)
    return RootTransaction(tid, slot_digit(key), 0, 0, b"", f"r{tid}", 0, function, key, encode_strict([script]))


def written_by(slot: Slot, tid: int) -> set[tuple[str, object]]:
    """What the transaction has written on `slot` in the execution step."""
    return {
        (operator, cell.key)
        for operator, cells in slot.cells_by_operator()
        for cell in cells
        if cell.footprint.tid == tid and cell.written
    }

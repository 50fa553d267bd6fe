"""One local transaction, run on its slot in the order of the serial execution: once, on current state, to its end.

A chain runs to its end, then its asynchronous calls, each a chain, depth first in call-path order. What phase 3 cannot
do ends the run: a call of another slot, and an external call.
"""

from __future__ import annotations

from typing import Any

from styx.model.cell import Cell
from styx.model.function_spec import FunctionSpec
from styx.model.waiting import ExternalCall, SyncCall
from styx.worker.blame import blame_invocation
from styx.worker.footprint import Footprint
from styx.worker.local_cells import LocalCells
from styx.worker.root import RootTransaction
from styx.worker.serial_run import ASYNCHRONOUS, SYNCHRONOUS, Calls, Ended, Frame, SerialRun, by_path


class LeftSlot(Exception):
    """Ends the run, because phase 3 cannot do the rest: a call of another slot, or an `external` call."""

    def __init__(self, external: bool) -> None:
        super().__init__()
        self.external = external


class LocalRun(SerialRun):
    """Runs one local transaction after the other, each in a call of `run` within the context `variables.shared`."""

    def run(self, root: RootTransaction, cells: LocalCells) -> None:
        """Runs a transaction, and sets its `result`. Its writes are the running transaction's of `cells`.

        Raises `Ended` and `LeftSlot`; then the writes and the result are void.
        """
        function, slot = root.function, root.slot
        assert function is not None, "a request that was refused is to run"
        footprint = self.footprint = Footprint(
            self._app, self._limits, self._n_slots, root.tid, root.timestamp_us, slot, slot, True, False, None
        )
        footprint.local = self._cells = cells
        self._called = 1
        try:
            self._chain(b"", function, root.key, root.params)
            root.result = self._value
            if self._made is not None:
                self._calls_made(slot)
        except (Ended, LeftSlot):
            self._abandon()
            raise
        except BaseException as error:
            blame_invocation(error, self._last, root)
            raise
        self._last = None

    def _chain(self, path: bytes, function: FunctionSpec, key: Any, params: bytes) -> None:
        """Runs a function and all that it calls synchronously."""
        self._chain_id = path
        if not self._first(path, function, key, params, ASYNCHRONOUS):
            self._go_on()

    def _calls_made(self, slot: int) -> None:
        """Runs the asynchronous calls of the chain that has ended, and of each chain among them."""
        further = self._further
        todo: Calls = []
        while True:
            path, call = self._made_path, self._made
            if call is None:
                if not todo:
                    return
                path, call = todo.pop()
            else:
                self._made = None
                if further:
                    further.append((path, call))
                    further.sort(key=by_path, reverse=True)
                    for _, each in further:
                        if each.slot != slot:
                            raise LeftSlot(False)
                    todo.extend(further)
                    further.clear()
                    path, call = todo.pop()
                elif call.slot != slot:
                    raise LeftSlot(False)
            self._chain(path, call.function, call.key, call.params)

    def _go_on(self) -> None:
        """Runs what the waiting function on top of the stack waits for, and so on, until none waits any more."""
        stack, returned = self._stack, False
        while stack:
            frame = stack[-1]
            if returned:
                returned = self._resume(frame)
                continue
            assert frame.request is not None
            number, call = frame.request.number, frame.request.call
            path = frame.invocation.step_path(number)
            returned = self._first(path, call.function, call.key, call.params, SYNCHRONOUS)

    def _cell(self, function: FunctionSpec, key: Any) -> Cell:
        return self._cells.cell(function.operator, key)

    def _asks(self, frame: Frame, request: SyncCall | ExternalCall) -> None:
        if type(request) is not SyncCall or request.call.slot != self.footprint.slot:
            raise LeftSlot(type(request) is ExternalCall)
        frame.request = request

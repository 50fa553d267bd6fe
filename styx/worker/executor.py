"""The execution step: drives users' coroutines by hand, without a task or future for any of them.

Runs root functions and calls on the state at the epoch's beginning, parks a function that waits for a synchronous
result under its call path, hands out and returns ack shares. Messages go to the outbox. `run` takes a number of
invocations, not a time. Paper sections 5.2 and 5.3.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Annotated, Any

from msgspec.structs import astuple

from styx.errors import InTransactionError
from styx.model.app import App
from styx.model.cell import Cell
from styx.model.context import CLOSED
from styx.model.execution import failure_of, foreign_await_error, start, unfinished
from styx.model.function_spec import FunctionSpec, MadeCall
from styx.model.limits import Limits
from styx.model.partitioning import PartitionNumbers
from styx.model.waiting import ExternalCall, SyncCall
from styx.native.compiled import FirstSteps
from styx.native.interpreted import RETURNED, USUAL, Steps
from styx.protocol.frames import Ack, Call, Drop, Patch, Result
from styx.worker.blame import blame_invocation
from styx.worker.calls_together import runs_together
from styx.worker.chains import SEQUENTIAL_CHAIN
from styx.worker.external_calls import known_outcome, pending
from styx.worker.footprint import EntityCell, Footprint, StartingCell
from styx.worker.invocation import Doomed, Invocation, abandon, external_failure
from styx.worker.notes import Notes, refusal_by
from styx.worker.outbox import outgoing_call
from styx.worker.own_variables import OwnVariables
from styx.worker.range_counts import RangeCounts
from styx.worker.root import RootTransaction
from styx.worker.slot import Slot
from styx.worker.waits import Waits

_REQUESTS = (SyncCall, ExternalCall)


class Executor(Waits):
    """The first execution of each epoch's transactions on one worker. `owners` maps every slot to its worker.

    `invocation` is the class of the contexts that functions get; a host may replace it between epochs by a class that
    measures. `calls` counts the functions started in all epochs, and `range_counts` what
    queries read then. The other fields belong to the open epoch. `read_only`
    are the TIDs of its read-only transactions with their root on this worker. `_ready` are the invocations to start, of
    which the first `_started` have started. `_suspended` are all invocations that have waited, each with the means to
    continue its coroutine.
    """

    def __init__(self, worker: int, app: App, limits: Limits, n_slots: int, notes: Notes | None = None) -> None:
        super().__init__(worker, app, limits, n_slots, notes)
        self._operations_max = limits.operations_max
        self._resolved = app.resolved
        self.invocation: type[Invocation] = Invocation
        self._ready: list[Invocation] = []
        self._started = 0
        self.read_only: set[int] = set()
        self.calls = 0
        self.range_counts = RangeCounts()
        self._suspended: dict[Invocation, Steps] = {}
        self._first_steps = FirstSteps()
        self._variables = OwnVariables()

    # An epoch's life ---------------------------------------------------------------------------------------

    def begin(self, epoch: int, roots: list[RootTransaction]) -> None:
        """Starts the transactions `roots`. A transaction that has failed already (a refused request) is done. So is one
        of a contended function: it goes to the lock phase, as if it had collided, and runs there for the first time. If
        that does not end it, it comes back in sequential mode, and starts like any other.
        """
        assert self.idle, "an epoch began while the last one's work was not done"
        assert self.open_roots == 0, "an epoch began while the last one's transactions were open"
        self.roots = {root.tid: root for root in roots}
        self._in_order = None
        self._locals = 0
        app, limits, n_slots, slots = self.app, self.limits, self.n_slots, self.slots
        for each in slots.values():
            each.epoch = epoch
        for root in roots:
            if root.done:
                if root.local:
                    self._locals += 1
                elif root.cut:
                    self.cut_roots.append(root)
                continue
            self.open_roots += 1
            slot, tid, function = root.slot, root.tid, root.function
            assert function is not None, "a request that was refused is to run"
            here = slots[slot]
            footprint = here.footprints[tid] = Footprint(
                app,
                limits,
                n_slots,
                tid,
                root.timestamp_us,
                slot,
                slot,
                root.sequential,
                function.read_only,
                root.externals,
            )
            footprint.here = here
            self._enqueue(footprint, here, function, root.key, root.params, b"", b"", 0, 1, slot)
            if function.contended and not root.sequential:
                self._ready.pop()
                root.collided = True
                self._finish(root)

    def end(self) -> None:
        """Forgets the epoch. Closes the coroutines that dropped transactions left suspended."""
        for invocation in self._suspended:
            if invocation._coroutine is not None:
                abandon(invocation, self.running)
        for slot in self.slots.values():
            for footprint in slot.footprints.values():
                # Invocations refer to their footprint. Without that circle everything is freed here, and the garbage
                # collector finds nothing.
                footprint.invocations.clear()
                footprint.pending_external = None
                footprint.rows = None
            slot.forget_epoch()
        self._waiting.clear()
        self._together.clear()
        self._suspended.clear()
        self._variables.clear()
        self._ready.clear()
        self._started = 0
        self._resumptions.clear()
        self.roots = {}
        self._in_order = None
        self.open_roots = 0
        if self.read_only:
            self.read_only = set()
        if self.cut or self.cut_roots:
            self.cut, self.cut_roots = set(), []
        self.stopped.clear()

    @property
    def idle(self) -> bool:
        """Whether no function can run until a message arrives."""
        return not self._ready and not self._resumptions

    def run(self, invocations: int) -> None:
        """Runs at most `invocations` invocations, counting continuations."""
        while invocations and not self.idle:
            invocations = self._variables.run(self._run, invocations)

    def _run(self, invocations: int) -> int:
        ready, resumptions, started, variables = self._ready, self._resumptions, self._started, self._variables.shared
        invocation: Invocation | None = None
        try:
            while invocations and not len(variables):
                invocations -= 1
                if resumptions:
                    invocation, result = resumptions.popleft()
                    self._resume(invocation, result)
                elif started < len(ready):
                    invocation = ready[started]
                    started += 1
                    self._start(invocation)
                else:
                    break
        except BaseException as error:
            blame_invocation(error, invocation, None if invocation is None else self.roots.get(invocation._env.tid))
            raise
        if started == len(ready):
            self.calls += started
            ready.clear()
            started = 0
        self._started = started
        return invocations

    def deliver(self, message: Call | Result | Ack | Drop) -> None:
        """Takes one message of this epoch from a peer."""
        if type(message) is Call:
            self._take_call(message)
        elif type(message) is Ack:
            self._credit(message)
        elif type(message) is Result:
            self._take_result(message)
        elif type(message) is Drop:
            self._bury(message.tid)

    def newcomer(self, patch: Patch) -> Footprint:
        """The footprint of a transaction that a patch brings to a slot in the lock phase."""
        tid, at, time_us, root_slot = patch.tid, patch.slot, patch.timestamp_us, patch.root_slot
        footprint = Footprint(
            self.app, self.limits, self.n_slots, tid, time_us, at, root_slot, False, False, patch.externals
        )
        footprint.here = self.slots[at]
        return footprint

    # Invocations -------------------------------------------------------------------------------------------

    def _take_call(self, call: Call) -> None:
        fields: tuple[Any, ...] = astuple(call)  # at once: compiled code reaches a Struct's fields slowly
        tid, root_slot, from_slot, at, operator, name, key, params, path, chain, *others = fields
        share, count, timestamp_us, sequential, externals, collided, read_only = others
        slot = self.slots[at]
        footprint = slot.footprints.get(tid)
        if footprint is None:
            footprint = slot.footprints[tid] = Footprint(
                self.app,
                self.limits,
                self.n_slots,
                tid,
                timestamp_us,
                at,
                root_slot,
                sequential,
                read_only,
                externals,
            )
            footprint.here = slot
        if footprint.dead:
            return
        if collided:
            footprint.collided = True
        if isinstance(key, list):
            key = tuple(key)  # msgpack has arrays only
        function = self._resolved.get((operator, name)) or self.app.resolve_call(operator, name)
        self._enqueue(footprint, slot, function, key, params, path, chain, share, count, from_slot)
        if share < 0 and not sequential and type(function.keys) is PartitionNumbers:
            runs_together(footprint, path)

    def _enqueue(
        self,
        footprint: Footprint,
        slot: Slot,
        function: FunctionSpec,
        key: Any,
        params: bytes,
        path: bytes,
        chain: bytes,
        share: int,
        count: int,
        from_slot: int,
    ) -> Invocation:
        """Makes an invocation on this worker and appends it to those that are ready."""
        operator = function.operator
        seen: Cell
        if footprint.read_only:
            if not path:
                self.read_only.add(footprint.tid)
            seen = StartingCell(key, slot.found.get(operator) or slot.find(operator))
        else:
            cells = slot.cells[operator]
            cell = cells.get(key)
            if cell is None:
                try:
                    found = slot.found[operator]
                except KeyError:
                    found = slot.find(operator)
                cell = cells[key] = EntityCell(footprint, key, found)
            elif cell.footprint is not footprint:
                cell = slot.shared_cell(cell, footprint, operator)
            seen = cell
        kind: Annotated[type[Invocation], USUAL] = self.invocation
        invocation = kind(
            key,
            footprint,
            function,
            seen,
            path,
            SEQUENTIAL_CHAIN if footprint.sequential else chain,
            self._operations_max,
            chain,
            params,
            share,
            count,
            from_slot,
            footprint,
        )
        footprint.invocations.append(invocation)
        self._ready.append(invocation)
        return invocation

    def _start(self, invocation: Invocation) -> None:
        """Runs an invocation to its first wait, or to its end."""
        if invocation._footprint.dead or (self.stopped.any and self._left_out(invocation)):
            return
        running, first_steps = self.running, self._first_steps
        coroutine: Coroutine[Any, Any, Any] | None = None
        try:
            running.invocation = invocation
            coroutine = start(invocation._spec, invocation, invocation._params)
            take = first_steps.take
            request = take(coroutine)
            running.invocation = None
            if invocation._doom is not None:
                raise Doomed
        except BaseException as error:  # noqa: BLE001 - the user's function: whatever it raises is its abort
            running.invocation = None
            if invocation._doom is not None:
                try:
                    running.withdraw()
                except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
                    pass
            self._not_returned(invocation, coroutine, error)
            return
        if request is not RETURNED:
            self._suspended[invocation] = first_steps.renew()
            self._waits(invocation, coroutine, request)
            return
        invocation._left = CLOSED
        failure = unfinished(invocation)
        if failure is None:
            self._returned(invocation, first_steps.result)
        else:
            first_steps.result[0] = None
            self._raised(invocation, failure)

    def _not_returned(
        self, invocation: Invocation, coroutine: Coroutine[Any, Any, Any] | None, error: BaseException
    ) -> None:
        """Ends the first step of an invocation that raised or was doomed. Without a coroutine no code of the app has
        run.
        """
        failure = failure_of(invocation, error)
        if coroutine is not None:
            steps = self._first_steps.renew()
            if invocation._doom is not None:
                self._suspended[invocation] = steps  # the coroutine may be suspended, and `end` closes it then
                invocation._coroutine = coroutine
                abandon(invocation, self.running)
            self._raised(invocation, failure)
        elif invocation._doom is not None:
            self._raised(invocation, failure)
        elif isinstance(error, InTransactionError):
            self._failed(invocation, refusal_by(self._notes, invocation, error))
        else:
            raise error

    def _send(
        self, invocation: Invocation, coroutine: Coroutine[Any, Any, Any], value: bytes | list[bytes] | None
    ) -> None:
        """Runs an invocation on to its next wait, or to its end."""
        running = self.running
        running.resumed += 1
        try:
            running.invocation = invocation
            request = self._variables.send(invocation, coroutine, value)
            running.invocation = None
            if invocation._doom is not None:
                raise Doomed
        except BaseException as error:  # noqa: BLE001 - the user's function: whatever it raises is its abort
            running.invocation = None
            if invocation._doom is not None:
                try:
                    running.withdraw()
                except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
                    pass
                doom = failure_of(invocation, error)
                invocation._coroutine = coroutine
                abandon(invocation, running)
                self._raised(invocation, doom)
            elif type(error) is StopIteration:
                invocation._left = CLOSED
                failure = unfinished(invocation)
                if failure is None:
                    self._returned(invocation, [error.value])
                else:
                    self._raised(invocation, failure)
            else:
                self._raised(invocation, failure_of(invocation, error))
        else:
            self._waits(invocation, coroutine, request)

    def _waits(self, invocation: Invocation, coroutine: Coroutine[Any, Any, Any], request: Any) -> None:
        # The type is checked first: reading an attribute of a foreign object could run code, unwatched.
        invocation._coroutine = coroutine
        self._variables.waits(invocation)
        own = type(request) in _REQUESTS and request.context is invocation
        if not own:
            foreign = foreign_await_error(coroutine, request)
            abandon(invocation, self.running)
            self._raised(invocation, foreign)
        elif type(request) is SyncCall:
            self._call(invocation, request)
        else:
            outcome = known_outcome(invocation._footprint, request)
            if outcome is None:
                self._abandon(invocation, pending(invocation, request, self.limits))
            elif outcome.error is not None:
                self._abandon(invocation, external_failure(invocation, outcome.error))
            else:
                # Queued, not resumed here: a function may make many such calls, and each would nest.
                self._resumptions.append((invocation, outcome.value))

    def send_call(
        self,
        footprint: Footprint,
        path: bytes,
        made: MadeCall,
        share: int,
        count: int,
        chain: bytes,
    ) -> Invocation | None:
        """Sends a call to the worker that owns its slot. Returns the invocation if that is this worker."""
        call_slot = made.slot
        owner = self.owners[call_slot]
        if owner != self.worker:
            self.outbox.send(owner, outgoing_call(footprint, path, made, share, count, chain))
            return None
        here, slot = footprint, self.slots[call_slot]
        if call_slot != footprint.slot:
            tid = footprint.tid
            known = slot.footprints.get(tid)
            if known is None:
                here = slot.footprints[tid] = Footprint(
                    self.app,
                    self.limits,
                    self.n_slots,
                    tid,
                    footprint.timestamp_us,
                    call_slot,
                    footprint.root_slot,
                    footprint.sequential,
                    footprint.read_only,
                    footprint.externals,
                )
                here.here = slot
            else:
                here = known
            if footprint.collided:
                here.collided = True
        return self._enqueue(
            here, slot, made.function, made.key, made.params, path, chain, share, count, footprint.slot
        )

"""One conflicting transaction run again on one slot, in the order of its serial execution.

Starts from the slot's *entries*, the calls that other slots make here. A call within the slot is executed. A call to
another slot is noted, and a synchronous one gets the result that is known of it. If none is known, because the call is
new or has changed, the run ends there and *waits* for a later round. While a function waits for another slot, the
entries of that slot's calls back run inside the wait, as in the serial execution. Nothing is sent or committed. Paper
section 6.3.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from contextvars import Context as Variables
from typing import Annotated, Any

import msgspec

from styx.errors import CallLimitExceeded, InTransactionError
from styx.model.context import PATH_STEP_BYTES
from styx.model.execution import encode_result, failure_of, foreign_await_error, start, unfinished
from styx.model.function_spec import FunctionSpec
from styx.model.waiting import ExternalCall, SyncCall
from styx.native.compiled import calls_more
from styx.native.interpreted import USUAL, native
from styx.protocol.frames import Failure, decode_outcome
from styx.worker.call_graph import CallGraph, Place, Sent
from styx.worker.current_cell import CurrentCell
from styx.worker.footprint import Writes
from styx.worker.invocation import Doomed, Invocation, Running, abandon, external_failure
from styx.worker.notes import Notes, failure_by, refusal_by
from styx.worker.slot import Slot

_SYNCHRONOUS = -1
_ASYNCHRONOUS = 0
_DEVIATION = ("aborted", "", "")
_LAST_STEP = b"\xff" * PATH_STEP_BYTES


class _Failed(Exception):
    """Ends the re-run with a failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


class _Waits(Exception):
    """Ends the re-run at the call to another slot whose result is not known. Its place is behind all that this slot is
    called to do within that call, which has run.
    """

    def __init__(self, chain: bytes, path: bytes) -> None:
        super().__init__()
        self.place: Place = (chain, path + _LAST_STEP)


@native
class _Due(msgspec.Struct, eq=False, frozen=True):
    """An invocation to run, in the order of the serial execution: by chain, then by path within the chain.

    `from_slot` is the slot that has called it, -1 for this one.
    """

    chain: bytes
    path: bytes
    function: FunctionSpec
    key: Any
    params: bytes
    share: int
    from_slot: int


class _Frame:
    """An open invocation, with the context variables that it has set. While it waits for another slot, `wait_path` is
    the awaited call's path and `wait_value` the call's result, None if it is not known.

    The first `counted` calls have been taken from the allowance.
    """

    __slots__ = ("counted", "due", "invocation", "variables", "wait_path", "wait_value")

    def __init__(self, due: _Due, invocation: Invocation) -> None:
        self.due = due
        self.invocation = invocation
        self.variables = Variables()
        self.counted = 0
        self.wait_path: bytes | None = None
        self.wait_value: bytes | None = None


class Rerun:
    """The re-run of one transaction on one slot. `writes` and the root's `result` are valid if `run` returns None.

    `made` are the calls to other slots by path, and `given` the results of calls from other slots by path and caller's
    slot. If the run has not come to its end, `stopped` is the place that it came to; if it `waits` there, its writes up
    to there are valid. `touched` are the entities that it ran on. `running` records whose code runs. If the watchdog
    interrupts some of it, everything is void.

    A call whose caller has moved here from another slot is there twice, until that slot has said that it calls no more.
    Both run: in a round in which something was patched nothing is final.
    """

    def __init__(
        self,
        graph: CallGraph,
        slot: Slot,
        current: Writes,
        running: Running,
        notes: Notes | None = None,
    ) -> None:
        self._notes = notes
        self.writes: Writes = {}
        self.result: bytes | None = None
        self.made: dict[bytes, Sent] = {}
        self.given: dict[tuple[bytes, int], bytes] = {}
        self.stopped: Place | None = None
        self.waits = False
        self.touched: list[tuple[str, Any]] = []
        footprint = graph.footprint
        self._graph = graph
        self._footprint = footprint
        self._slot = slot
        self._current = current
        self._running = running
        self._allowance = graph.allowance
        # An invocation that the execution step measured is measured here as well.
        self._kind: type[Invocation] = type(footprint.invocations[0]) if footprint.invocations else Invocation
        # Serial order. The number tells calls at one path apart: two slots may claim a call that moves between them.
        self._due: list[tuple[bytes, bytes, int, int, _Due]] = []
        self._pushed = 0
        self._open: list[_Frame] = []

    def run(self) -> Failure | None:
        """Runs this slot's part to its end, to a wait for a result that is not known, or to its first failure in serial
        order.
        """
        for entry in self._graph.entries():
            share = _SYNCHRONOUS if entry.synchronous else _ASYNCHRONOUS
            due = _Due(entry.chain, entry.path, entry.function, entry.key, entry.params, share, entry.from_slot)
            self._due.append((due.chain, due.path, 1, 0, due))
        heapq.heapify(self._due)
        try:
            while self._due:
                self._run_due(heapq.heappop(self._due)[4])
        except _Failed as failed:
            self.stopped = failed.failure.place
            self._close(self._keep_calls)
            return failed.failure
        except _Waits as waits:
            self.stopped, self.waits = waits.place, True
            self._close(self._note_calls)
        return None

    def _close(self, of_open: Callable[[Invocation], None]) -> None:
        """Ends the functions that have not ended."""
        while self._open:
            invocation = self._open.pop().invocation
            of_open(invocation)
            abandon(invocation, self._running)

    def _note_calls(self, invocation: Invocation) -> None:
        """Notes the calls to other slots that run later: asynchronous ones, and those that were made together with the
        awaited one. So the results of all of these come in one round.
        """
        for index, call in enumerate(invocation._made):
            if call.slot != self._slot.index:
                self.made.setdefault(invocation.step_path(index), Sent(call, invocation._chain_id))

    def _keep_calls(self, invocation: Invocation) -> None:
        """Leaves the asynchronous calls to other slots as they are: the function has failed, and makes none of them. A
        call that was synchronous before comes before the failure, and is withdrawn.
        """
        for index, call in enumerate(invocation._made):
            if not call.synchronous:
                path = invocation.step_path(index)
                before = self._graph.sent(path)
                if before is not None and not before.call.synchronous:
                    self.made[path] = before

    # An explicit stack instead of recursion: call chains may be deeper than Python's stack -------------------

    def _run_due(self, due: _Due) -> None:
        self._push(due)
        value: bytes | None = None
        while self._open:
            frame = self._open[-1]
            if frame.wait_path is not None:
                called_back = self._next_within(frame.due.chain, frame.wait_path)
                if called_back is not None:
                    self._push(called_back)
                    value = None
                    continue
                if frame.wait_value is None:
                    raise _Waits(frame.due.chain, frame.wait_path)
                value, frame.wait_path = frame.wait_value, None
            request = self._send(frame, value)
            if request is None:
                self._open.pop()
                value = frame.invocation._result
            elif isinstance(request, SyncCall):
                self._synchronous_call(frame, request)
                value = None
            else:
                value = self._external(frame, request)

    def _push(self, due: _Due) -> None:
        footprint = self._footprint
        spec, operator = due.function, due.function.operator
        cell = CurrentCell(self.writes, self._current, self._slot, operator, due.key)
        self.touched.append((operator, due.key))
        kind: Annotated[type[Invocation], USUAL] = self._kind
        invocation = kind(
            due.key,
            footprint,
            spec,
            cell,
            due.path,
            due.chain,
            footprint.limits.operations_max,
            due.chain,
            due.params,
            due.share,
            0,
            self._slot.index,
            footprint,
        )
        running = self._running
        try:
            running.invocation = invocation
            invocation._coroutine = start(spec, invocation, due.params)
            running.invocation = None
            if running.cut:
                raise Doomed
        except BaseException as error:
            running.invocation = None
            if running.cut:
                try:
                    running.withdraw()
                except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
                    pass
                raise _deviation(invocation, invocation.position()) from None
            if not isinstance(error, InTransactionError):
                raise
            raise _Failed(refusal_by(self._notes, invocation, error)) from None
        self._open.append(_Frame(due, invocation))

    def _next_within(self, chain: bytes, path: bytes) -> _Due | None:
        """The next invocation that another slot called synchronously within the call at `path`."""
        if self._due and self._due[0][0] == chain and self._due[0][1].startswith(path):
            return heapq.heappop(self._due)[4]
        return None

    def _send(self, frame: _Frame, value: bytes | None) -> SyncCall | ExternalCall | None:
        """Continues an invocation to its next wait; None when it has returned."""
        invocation = frame.invocation
        coroutine = invocation._coroutine
        assert coroutine is not None
        running = self._running
        running.resumed += 1
        try:
            running.invocation = invocation
            request = frame.variables.run(coroutine.send, value)
            running.invocation = None
            if running.cut:
                raise Doomed
        except BaseException as error:  # noqa: BLE001 - the user's function: whatever it raises is its abort
            running.invocation = None
            if running.cut:
                try:
                    running.withdraw()
                except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
                    pass
                raise _deviation(invocation, invocation.position()) from None
            invocation.end()
            if type(error) is not StopIteration:
                raise self._raised(frame, failure_of(invocation, error)) from None
            failure = unfinished(invocation)
            if failure is not None:
                raise self._raised(frame, failure) from None
            self._returned(frame, error.value)
            return None
        if invocation._doom is not None:
            raise self._raised(frame, invocation._doom)
        if type(request) in (SyncCall, ExternalCall) and request.context is invocation:
            return request  # type: ignore[no-any-return]
        raise self._raised(frame, foreign_await_error(coroutine, request))

    # Calls and results --------------------------------------------------------------------------------------

    def _synchronous_call(self, frame: _Frame, request: SyncCall) -> None:
        index, call, chain = request.number, request.call, frame.due.chain
        path = frame.invocation.step_path(index)
        if not self._within_allowance(frame):
            raise _deviation(frame.invocation, path)
        if call.slot == self._slot.index:
            self._push(_Due(chain, path, call.function, call.key, call.params, _SYNCHRONOUS, -1))
            return
        made = self.made[path] = Sent(call, chain)
        frame.wait_path, frame.wait_value = path, self._graph.result(path, made)

    def _within_allowance(self, frame: _Frame) -> bool:
        """Takes the calls made so far from the allowance. Returns False if it is used up: a call above the limit then
        precedes the next failure.
        """
        calls = frame.invocation._made
        for index in range(frame.counted, len(calls)):
            self._allowance -= 1 + calls_more(calls[index].params, self._footprint.limits)
        frame.counted = len(calls)
        return self._allowance >= 0

    def _returned(self, frame: _Frame, value: Any) -> None:
        invocation = frame.invocation
        if not self._within_allowance(frame):
            raise _deviation(invocation, invocation.position())
        if invocation.synchronous:
            result = self._encoded(frame, value)
            self._allowance -= calls_more(result, self._footprint.limits)
            if self._allowance < 0:
                raise _deviation(invocation, invocation.position())
            if frame.due.from_slot >= 0:
                self.given[invocation._path, frame.due.from_slot] = result
        elif not invocation._path:
            self.result = self._encoded(frame, value)
        for index, call in enumerate(invocation._made):
            if not call.synchronous:
                path = invocation.step_path(index)
                if call.slot == self._slot.index:
                    due = _Due(path, path, call.function, call.key, call.params, _ASYNCHRONOUS, -1)
                    self._pushed += 1
                    heapq.heappush(self._due, (path, path, 0, self._pushed, due))
                else:
                    self.made[path] = Sent(call, invocation._chain_id)

    def _encoded(self, frame: _Frame, value: Any) -> bytes:
        """The result of an invocation whose caller gets it."""
        invocation, running = frame.invocation, self._running
        try:
            running.invocation = invocation
            result = invocation._result = encode_result(invocation._spec, value, self._footprint.limits)
            running.invocation = None
            if running.cut:
                raise Doomed
        except BaseException as error:
            running.invocation = None
            if running.cut:
                try:
                    running.withdraw()
                except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
                    pass
                raise _deviation(invocation, invocation.position()) from None
            if not isinstance(error, InTransactionError):
                raise
            raise self._raised(frame, error) from None
        return result

    def _raised(self, frame: _Frame, error: BaseException) -> _Failed:
        """The failure of an exception, or a deviation if the call limit comes before it."""
        invocation = frame.invocation
        if type(error) is CallLimitExceeded or not self._within_allowance(frame):
            return _deviation(invocation, invocation.position())  # the count before it is unknown here
        running = self._running
        failure: Failure | None = None
        try:
            running.invocation = invocation
            failure = failure_by(self._notes, invocation, error)
            running.invocation = None
        except BaseException:  # noqa: BLE001 - an interruption: describing an error raises nothing
            running.invocation = None
        if running.cut:
            try:
                running.withdraw()
            except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
                pass
        return _deviation(invocation, invocation.position()) if failure is None else _Failed(failure)

    def _external(self, frame: _Frame, request: ExternalCall) -> bytes | None:
        known = (self._footprint.externals or {}).get(request.key)
        if known is None:
            raise _deviation(frame.invocation, frame.invocation.position())
        outcome = decode_outcome(known)
        if outcome.error is not None:
            if not self._within_allowance(frame):
                raise _deviation(frame.invocation, frame.invocation.position())
            raise _Failed(external_failure(frame.invocation, outcome.error))
        return outcome.value


def _deviation(invocation: Invocation, position: bytes) -> _Failed:
    return _Failed(Failure(invocation._chain_id, position, True, *_DEVIATION))

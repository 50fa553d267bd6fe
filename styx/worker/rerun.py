"""One conflicting transaction run again on one slot, in the order of its serial execution.

Starts from the slot's *entries*, the cached invocations that another slot called. A call within the slot is executed,
even if it has changed. A call to another slot must equal the cached call, and a synchronous call gets the cached
result. While a function waits for another slot, the entries of that slot's calls back run inside the wait, as in the
serial execution. Nothing is sent or committed. Paper section 6.3.
"""

from __future__ import annotations

import heapq
from contextvars import Context as Variables
from typing import Annotated, Any

import msgspec

from styx.errors import CallLimitExceeded, InTransactionError
from styx.model.execution import encode_result, failure_of, foreign_await_error, start, unfinished
from styx.model.function_spec import FunctionSpec, MadeCall
from styx.model.waiting import ExternalCall, SyncCall
from styx.native.compiled import calls_more
from styx.native.interpreted import USUAL, native
from styx.protocol.frames import Failure, decode_outcome
from styx.worker.current_cell import CurrentCell
from styx.worker.footprint import Footprint, Writes
from styx.worker.invocation import Doomed, Invocation, Running, abandon, external_failure
from styx.worker.notes import Notes, failure_by, refusal_by
from styx.worker.slot import Slot

_SYNCHRONOUS = -1
_ASYNCHRONOUS = 0
_DEVIATION = ("aborted", "", "")


class _Failed(Exception):
    """Ends the re-run with a failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self.failure = failure


@native
class _Due(msgspec.Struct, eq=False, frozen=True):
    """An invocation to run, in the order of the serial execution: by chain, then by path within the chain.

    `cached` is its record from the execution step, if the call is unchanged. `entry`: the call came from another slot.
    """

    chain: bytes
    path: bytes
    function: FunctionSpec
    key: Any
    params: bytes
    share: int
    cached: Invocation | None
    entry: bool


class _Frame:
    """An open invocation, with the context variables that it has set. While it waits for another slot, `wait_path` is
    the awaited call's path and `wait_value` the call's result.

    The first `counted` calls have been taken from the allowance. `same` says of each call compared so far whether it
    equals the cached call.
    """

    __slots__ = ("counted", "due", "invocation", "same", "variables", "wait_path", "wait_value")

    def __init__(self, due: _Due, invocation: Invocation) -> None:
        self.due = due
        self.invocation = invocation
        self.variables = Variables()
        self.counted = 0
        self.same: list[bool] = []
        self.wait_path: bytes | None = None
        self.wait_value: bytes | None = None


class Rerun:
    """The re-run of one transaction on one slot. `writes` and the root's `result` are valid if `run` returns None.

    `may_grow`: the transaction may make more calls on this slot than before, within an allowance that keeps the sum
    over all slots within the limit. Beyond the allowance it deviates, and is counted exactly in the next epoch.
    `running` records whose code runs. If the watchdog interrupts some of it, the return value of `run` is void.
    """

    def __init__(
        self,
        footprint: Footprint,
        slot: Slot,
        current: Writes,
        may_grow: bool,
        running: Running,
        notes: Notes | None = None,
    ) -> None:
        self._notes = notes
        self.writes: Writes = {}
        self.result: bytes | None = None
        self._footprint = footprint
        self._slot = slot
        self._current = current
        self._running = running
        growth = footprint.limits.invocations_max // (2 * footprint.n_slots) if may_grow else 0
        self._cached = {invocation._path: invocation for invocation in footprint.invocations}
        self._allowance = sum(map(self._counted, footprint.invocations)) + growth
        self._due: list[tuple[bytes, bytes, _Due]] = []
        self._open: list[_Frame] = []

    def run(self) -> Failure | None:
        """Runs this slot's part to its end, or to its first failure in serial order."""
        cached = self._cached
        for path, invocation in cached.items():
            if not path or path[:-2] not in cached:
                due = _Due(
                    invocation._chain_id,
                    path,
                    invocation._spec,
                    invocation._key,
                    invocation._params,
                    invocation._share,
                    invocation,
                    True,
                )
                self._due.append((due.chain, due.path, due))
        heapq.heapify(self._due)
        try:
            while self._due:
                self._run_due(heapq.heappop(self._due)[2])
        except _Failed as failed:
            while self._open:
                abandon(self._open.pop().invocation, self._running)
            return failed.failure
        return None

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
        # An invocation that the execution step measured is measured here as well.
        kind: Annotated[type[Invocation], USUAL] = Invocation if due.cached is None else type(due.cached)
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
            return heapq.heappop(self._due)[2]
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

    # Comparing with the cached call graph ------------------------------------------------------------------

    def _synchronous_call(self, frame: _Frame, request: SyncCall) -> None:
        index, call = request.number, request.call
        path = frame.invocation.step_path(index)
        if not self._within_allowance(frame):
            raise _deviation(frame.invocation, path)
        self._compare_calls(frame)
        if call.slot == self._slot.index:
            cached = self._cached.get(path) if frame.same[index] else None
            self._push(
                _Due(
                    frame.due.chain,
                    path,
                    call.function,
                    call.key,
                    call.params,
                    _SYNCHRONOUS,
                    cached,
                    False,
                )
            )
            return
        assert frame.due.cached is not None
        result = (frame.due.cached._results or {}).get(index)
        if result is None:  # the callee failed in the execution step; its result now is not known on this slot
            raise _deviation(frame.invocation, path)
        frame.wait_path, frame.wait_value = path, result

    def _within_allowance(self, frame: _Frame) -> bool:
        """Takes the calls made so far from the allowance. Returns False if it is used up: a call above the limit then
        precedes the next failure.
        """
        calls = frame.invocation._made
        for index in range(frame.counted, len(calls)):
            self._allowance -= 1 + calls_more(calls[index].params, self._footprint.limits)
        frame.counted = len(calls)
        return self._allowance >= 0

    def _counted(self, invocation: Invocation) -> int:
        """How many calls the limit counts for an invocation: the calls that it made, and its result."""
        limits, calls = self._footprint.limits, invocation._made
        count = len(calls) + self._result_counted(invocation)
        for call in calls:
            count += calls_more(call.params, limits)
        return count

    def _result_counted(self, invocation: Invocation) -> int:
        """How many calls the limit counts for the result that an invocation gave to its caller."""
        given = invocation._result if invocation.synchronous else None
        return 0 if given is None else calls_more(given, self._footprint.limits)

    def _compare_calls(self, frame: _Frame) -> None:
        # In the order of the calls: the place of the first difference decides which failures on other slots still
        # count.
        calls = frame.invocation._made
        for index in range(len(frame.same), len(calls)):
            frame.same.append(self._compare(frame, index, calls[index]))

    def _compare(self, frame: _Frame, index: int, call: MadeCall) -> bool:
        """Whether call `index` equals the cached one. Deviates if another slot would notice the difference."""
        cached = frame.due.cached
        before = cached._made[index] if cached is not None and index < len(cached._made) else None
        if before == call:
            return True
        path = frame.invocation.step_path(index)
        if before is not None and not self._wholly_here(path, before):
            raise _deviation(frame.invocation, path)
        if call.slot != self._slot.index:
            raise _deviation(frame.invocation, path)
        return False

    def _wholly_here(self, path: bytes, call: MadeCall) -> bool:
        """Whether the cached call and all calls below it ran on this slot, so that no other slot notices if it is
        dropped.
        """
        below = [(path, call)]
        while below:
            path, call = below.pop()
            if call.slot != self._slot.index:
                return False
            invocation = self._cached.get(path)
            if invocation is not None:
                below.extend((invocation.step_path(i), c) for i, c in enumerate(invocation._made))
        return True

    def _returned(self, frame: _Frame, value: Any) -> None:
        invocation, cached = frame.invocation, frame.due.cached
        if not self._within_allowance(frame):
            raise _deviation(invocation, invocation.position())
        if cached is not None and cached._failed:
            # The chain ended there in the execution step, so its asynchronous calls were never sent.
            raise _deviation(invocation, invocation.position())
        if invocation.synchronous or not invocation.path:
            running = self._running
            try:
                running.invocation = invocation
                invocation._result = encode_result(invocation._spec, value, self._footprint.limits)
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
            self._allowance -= self._result_counted(invocation)
            if self._allowance < 0:
                raise _deviation(invocation, invocation.position())
            if not invocation.path:
                self.result = invocation._result
            elif frame.due.entry and cached is not None and invocation._result != cached._result:
                raise _deviation(invocation, invocation.position())
        self._asynchronous_calls(frame)

    def _asynchronous_calls(self, frame: _Frame) -> None:
        invocation, cached = frame.invocation, frame.due.cached
        self._compare_calls(frame)
        for index, call in enumerate(invocation._made):
            if not call.synchronous and call.slot == self._slot.index:
                path = invocation.step_path(index)
                due = _Due(
                    path,
                    path,
                    call.function,
                    call.key,
                    call.params,
                    _ASYNCHRONOUS,
                    self._cached.get(path) if frame.same[index] else None,
                    False,
                )
                heapq.heappush(self._due, (path, path, due))
        if cached is not None:
            for index in range(len(invocation._made), len(cached._made)):
                if not self._wholly_here(invocation.step_path(index), cached._made[index]):
                    raise _deviation(invocation, invocation.position())

    def _raised(self, frame: _Frame, error: BaseException) -> _Failed:
        """The failure of an exception. If a synchronous call before the exception has changed, a deviation instead: the
        call that ran before is void.
        """
        invocation, cached = frame.invocation, frame.due.cached
        if type(error) is CallLimitExceeded or not self._within_allowance(frame):
            return _deviation(invocation, invocation.position())  # the count before it is unknown here
        if cached is not None:
            for index, (before, now) in enumerate(zip(cached._made, invocation._made, strict=False)):
                path = invocation.step_path(index)
                if before.synchronous and now != before and not self._wholly_here(path, before):
                    return _deviation(invocation, path)
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

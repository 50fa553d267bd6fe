"""Functions run one after the other in the order of the serial execution, each once, to its end: what is common to a
local transaction and to a read outside the log.

A function waits on a stack of ours, because call chains may be deeper than Python's stack. The count of calls is exact.
An exception ends the run, because it is the first one in the serial order. The caller decides where a function runs,
what it sees, and which call is the next.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context as Variables
from operator import itemgetter
from typing import Annotated, Any, Final

from styx.errors import FunctionTooLong, InTransactionError, describe
from styx.model.call_limit import call_limit_error
from styx.model.cell import Cell
from styx.model.context import CLOSED
from styx.model.execution import encode_result, failure_of, foreign_await_error, start, unfinished
from styx.model.function_spec import FunctionSpec, MadeCall
from styx.model.waiting import ExternalCall, SyncCall
from styx.native.compiled import FirstSteps, calls_more
from styx.native.interpreted import RETURNED, USUAL, Steps
from styx.protocol.frames import Failure
from styx.worker.endings import described
from styx.worker.executor import Executor
from styx.worker.footprint import Footprint
from styx.worker.invocation import Doomed, Invocation, abandon, failure_at
from styx.worker.notes import Notes, refusal_by
from styx.worker.own_variables import OwnVariables

SYNCHRONOUS: Final = -1
ASYNCHRONOUS: Final = 0
_REQUESTS: Final = (SyncCall, ExternalCall)
by_path = itemgetter(0)
"""Sorts calls in the order of the serial execution."""

Calls = list[tuple[bytes, MadeCall]]


class Ended(Exception):
    """Ends the run with a failure. `cut`: the watchdog has interrupted the function."""

    def __init__(self, failure: Failure, cut: bool) -> None:
        super().__init__()
        self.failure = failure
        self.cut = cut


class Frame:
    """A function that waits for the synchronous call `request`, with the context variables that it has set (None: it
    has set none). `steps` keeps its coroutine going.
    """

    __slots__ = ("invocation", "request", "steps", "variables")

    def __init__(self, invocation: Invocation, steps: Steps, variables: Variables | None) -> None:
        self.invocation = invocation
        self.steps = steps
        self.variables = variables
        self.request: SyncCall | None = None


class SerialRun:
    """Runs functions within the context `variables.shared`.

    `calls` counts the functions started. `footprint` is the transaction's, with the notes of its run. `_made` is an
    asynchronous call of the chain that runs, usually the only one, and `_further` are the others. `_called` is the
    transaction's count of calls, and `_value` the result of the function that has ended last.
    """

    footprint: Footprint

    def __init__(self, executor: Executor, notes: Notes | None, variables: OwnVariables) -> None:
        self.calls = 0
        self._app = executor.app
        self._limits = executor.limits
        self._n_slots = executor.n_slots
        self._operations_max = executor.limits.operations_max
        self._kind: type[Invocation] = executor.invocation
        self._running = executor.running
        self._notes = notes
        self._variables = variables
        self._first_steps = FirstSteps()
        self._stack: list[Frame] = []
        self._made: MadeCall | None = None
        self._made_path = b""
        self._further: Calls = []
        self._called = 1
        self._chain_id = b""
        self._value: bytes | None = None
        self._last: Invocation | None = None

    def _cell(self, function: FunctionSpec, key: Any) -> Cell:
        """What the function sees of its entity."""
        raise NotImplementedError

    def _asks(self, frame: Frame, request: SyncCall | ExternalCall) -> None:
        """A function waits: the frame gets its request, or an exception ends the run."""
        raise NotImplementedError

    def _abandon(self) -> None:
        """Ends all that waits, and forgets the asynchronous calls: the run has no result."""
        self._made = None
        self._further.clear()
        while self._stack:
            # The stack keeps the frame until then: with its `steps` the coroutine would end, unwatched. A variable of
            # compiled code would not, because it ends with its last use.
            abandon(self._stack[-1].invocation, self._running)
            self._stack.pop()

    # One function ------------------------------------------------------------------------------------------

    def _first(self, path: bytes, function: FunctionSpec, key: Any, params: bytes, share: int) -> bool:
        """Runs a function to its first wait, or to its end. Returns whether it has ended; otherwise it is on the
        stack.
        """
        chain, footprint, first_steps = self._chain_id, self.footprint, self._first_steps
        kind: Annotated[type[Invocation], USUAL] = self._kind
        invocation = kind(
            key,
            footprint,
            function,
            self._cell(function, key),
            path,
            chain,
            self._operations_max,
            chain,
            params,
            share,
            self._called,
            footprint.slot,
            footprint,
        )
        self._last = invocation
        self.calls += 1
        running, variables = self._running, self._variables.shared
        own: Variables | None = None
        try:
            if not len(variables):
                # As `_start`: a call for each function would cost more than what it does.
                running.invocation = invocation
                coroutine = invocation._coroutine = start(function, invocation, params)
                take = first_steps.take
                request = take(coroutine)
                if len(variables):
                    own = variables
            else:  # they are another function's
                own = Variables()
                request = own.run(self._start, invocation)
            running.invocation = None
            if invocation._doom is not None:
                raise Doomed
        except BaseException as error:  # noqa: BLE001 - the user's function: whatever it raises is its abort
            running.invocation = None
            raise self._not_returned(invocation, error) from None
        if request is not RETURNED:
            self._stack.append(Frame(invocation, first_steps.renew(), own))
            self._waits(self._stack[-1], request)
            return False
        invocation._coroutine = None
        invocation._left = CLOSED
        failure = unfinished(invocation)
        if failure is not None:
            first_steps.result[0] = None
            raise self._raised(invocation, failure)
        self._returned(invocation, first_steps.result)
        return True

    def _start(self, invocation: Invocation) -> Any:
        self._running.invocation = invocation
        coroutine = start(invocation._spec, invocation, invocation._params)
        invocation._coroutine = coroutine
        take: Callable[[Coroutine[Any, Any, Any]], Any] = self._first_steps.take
        return take(coroutine)

    def _not_returned(self, invocation: Invocation, error: BaseException) -> BaseException:
        """The end of a first step that raised or was doomed. Without a coroutine no code of the app has run."""
        running, doomed = self._running, invocation._doom is not None
        if doomed:
            self._withdraw()
        failure = failure_of(invocation, error)
        if invocation._coroutine is not None:
            steps = self._first_steps.renew()
            if doomed:
                abandon(invocation, running)  # it may be suspended
            del steps
            return self._raised(invocation, failure)
        if doomed:
            return self._raised(invocation, failure)
        if isinstance(error, InTransactionError):
            return Ended(refusal_by(self._notes, invocation, error), False)
        return error

    def _resume(self, frame: Frame) -> bool:
        """Continues the function on top of the stack with the result that it waited for. Returns whether it ended."""
        invocation, running, shared = frame.invocation, self._running, self._variables.shared
        coroutine = invocation._coroutine
        assert coroutine is not None
        self._last = invocation
        invocation._called = self._called
        running.resumed += 1
        own = frame.variables
        if own is None and len(shared):
            own = frame.variables = Variables()  # those set there are another function's
        try:
            running.invocation = invocation
            if own is None or own is shared:
                request = coroutine.send(self._value)
            else:
                request = own.run(coroutine.send, self._value)
            running.invocation = None
            if invocation._doom is not None:
                raise Doomed
        except BaseException as error:  # noqa: BLE001 - the user's function: whatever it raises is its abort
            running.invocation = None
            if invocation._doom is not None:
                self._withdraw()
                failure = failure_of(invocation, error)
                abandon(invocation, running)
                raise self._raised(invocation, failure) from None
            if type(error) is not StopIteration:
                raise self._raised(invocation, failure_of(invocation, error)) from None
            returned = [error.value]
        else:
            if frame.variables is None and len(shared):
                frame.variables = shared
            self._waits(frame, request)
            return False
        self._stack.pop()
        invocation.end()
        unended = unfinished(invocation)
        if unended is not None:
            raise self._raised(invocation, unended)
        self._returned(invocation, returned)
        return True

    def _waits(self, frame: Frame, request: Any) -> None:
        # The type is checked first: reading an attribute of a foreign object could run code, unwatched.
        invocation = frame.invocation
        self._called = invocation._called
        own = type(request) in _REQUESTS and request.context is invocation
        if not own:
            coroutine = invocation._coroutine
            assert coroutine is not None
            foreign = foreign_await_error(coroutine, request)
            abandon(invocation, self._running)
            raise self._raised(invocation, foreign)
        self._asks(frame, request)

    # Its end -----------------------------------------------------------------------------------------------

    def _returned(self, invocation: Invocation, returned: list[Any]) -> None:
        """Ends an invocation that returned the only item of `returned`. Empties the list while the watchdog looks on,
        because a finalizer of the returned object is the app's code.
        """
        self._called = invocation._called
        wanted = invocation._share < 0 or not invocation._path
        if wanted or returned[0] is not None:
            self._value = self._taken(invocation, returned, wanted)
        calls = invocation._calls
        if calls is not None:
            for index, call in enumerate(calls):
                if not call.synchronous:
                    path = invocation.step_path(index)
                    if self._made is None:
                        self._made, self._made_path = call, path
                    else:
                        self._further.append((path, call))

    def _taken(self, invocation: Invocation, returned: list[Any], wanted: bool) -> bytes | None:
        """The encoded result, if it is `wanted`."""
        running, limits = self._running, self._limits
        result: bytes | None = None
        try:
            running.invocation = invocation
            if wanted:
                result = encode_result(invocation._spec, returned[0], limits)
            returned[0] = None
            running.invocation = None
            if invocation._doom is not None:
                raise Doomed
            if result is not None and invocation._share < 0 and len(result) >= limits.call_bytes:
                self._called += calls_more(result, limits)
                if self._called > limits.invocations_max:
                    raise call_limit_error(limits, result)
        except BaseException as error:
            running.invocation = None
            if invocation._doom is not None:
                self._withdraw()
            elif not isinstance(error, InTransactionError):
                raise
            failure = failure_of(invocation, error)
            returned[0] = None
            raise self._raised(invocation, failure) from None
        return result

    def _raised(self, invocation: Invocation, error: BaseException) -> Ended:
        """The end of the run by an exception of the invocation."""
        invocation.end()
        if type(error) is not FunctionTooLong or error is not invocation._doom:
            told = described(self._running, self._notes, invocation, error)
            if told is not None:
                return Ended(told, False)
        doom = invocation._doom
        assert isinstance(doom, FunctionTooLong)
        failure = failure_at(invocation, ("aborted", *describe(doom)))
        if self._notes is not None:
            self._notes.raised(invocation, doom, failure)
        return Ended(failure, True)

    def _withdraw(self) -> None:
        try:
            self._running.withdraw()
        except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
            pass

"""One invocation: a context with the data that the executor and the lock phase keep, and the record of which one runs.

An invocation is kept until its epoch closes, because the lock phase runs it again. Paper sections 5.2 and 6.3
(call-graph caching). The engine's thread records the invocation that it runs. The watchdog, on another thread, reads
the record, dooms that invocation at the same moment, and interrupts it. So only a user's code is interrupted, and the
engine learns of the interruption as soon as that code has ended, however it ended.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Final, cast

from styx.errors import FunctionTooLong, describe
from styx.model.context import CLOSED, PATH_STEP_BYTES, Context
from styx.model.execution import ErrorTriple, close_quietly
from styx.model.function_spec import MadeCall
from styx.native.interpreted import native, plain_stores
from styx.protocol.frames import Failure, Result
from styx.worker.outbox import made_call
from styx.worker.own_variables import apart

if TYPE_CHECKING:
    from styx.worker.footprint import Footprint


def _nothing() -> None:
    """Does nothing, where there is no watchdog."""


class Running:
    """What the engine shares with the watchdog. `invocation` is the one whose code runs, None while engine code runs.

    `harmless`: the running code has no part in any outcome, such as the `finally` blocks of an abandoned function.
    `cut`: the watchdog has doomed an invocation; the lock phase clears the flag. `withdraw` cancels an interruption
    that has not happened yet, and may raise it instead. `resumed` counts how often a function was started or continued.
    """

    def __init__(self) -> None:
        self.invocation: Invocation | None = None
        self.harmless = False
        self.cut = False
        self.resumed = 0
        self.withdraw: Callable[[], None] = _nothing


CUT_CODE: Final = "cut"
"""The code of a failure whose outcome must still be recorded. No reply has it."""
FIRST_STEP: Final = (0).to_bytes(PATH_STEP_BYTES, "big")
_NO_CALLS: Final[list[tuple[bytes, MadeCall]]] = []
_by_path = itemgetter(0)


class Doomed(Exception):
    """Ends a function that has returned although its context had refused one of its operations."""


@native(subclassed=True)
@plain_stores
class Invocation(Context, eq=False):
    """One invocation of a function, which is also its context.

    `_caller` is the waiting invocation on this worker, None for a chain's outermost function or a remote caller.
    `_share` is as in `Call`. `_below` collects the asynchronous calls of synchronous callees (None: none yet).
    `_results` has the awaited results by call index.
    """

    if TYPE_CHECKING:
        _footprint: Footprint = cast("Footprint", None)
        _caller: Invocation | None = None

    @property
    def synchronous(self) -> bool:
        """Whether the caller waits for this invocation, and keeps the chain's share."""
        return self._share < 0

    @property
    def path(self) -> bytes:
        """The call path: two bytes a step, the index of the call."""
        return self._path

    def step_path(self, index: int) -> bytes:
        """The path of this invocation's call number `index`."""
        return self._path + (index.to_bytes(PATH_STEP_BYTES, "big") if index else FIRST_STEP)

    def position(self) -> bytes:
        """The present place in serial order: after all calls made so far."""
        return self._path + len(self._made).to_bytes(PATH_STEP_BYTES, "big")

    def asynchronous_calls(self) -> list[tuple[bytes, MadeCall]]:
        """The chain's asynchronous calls in call-path order."""
        calls, path = self._calls, self._path
        if calls is None and self._below is None:
            return _NO_CALLS
        own = []
        for index, call in enumerate(calls or ()):
            if not call.synchronous:
                own.append((path + index.to_bytes(PATH_STEP_BYTES, "big"), call))
        return own if self._below is None else sorted([*own, *self._below], key=_by_path)

    def resumed_with(self, result: Result) -> bytes:
        """Remembers a synchronous call's result and the asynchronous calls made below it. Returns the value."""
        value = result.value
        assert value is not None
        if result.calls:
            if self._below is None:
                self._below = []
            app = self._env.app
            self._below.extend([(path, made_call(app, spec)) for path, spec in result.calls])
        if self._results is None:
            self._results = {}
        self._results[int.from_bytes(result.path[-2:], "big")] = value
        return value

    def end(self) -> None:
        """Marks the invocation as ended: from now on the context refuses all operations."""
        self._left = CLOSED
        self._coroutine = None


# An error about a stored context has the type's name, which must be the same in every execution.
setattr(Invocation, "__name__", Context.__name__)  # noqa: B010 - a compiled class takes no assignment


def abandon(invocation: Invocation, running: Running) -> None:
    """Closes an invocation and, if it is suspended, its coroutine.

    The context is closed first, so that operations in `finally` blocks have no effect. The blocks run in a separate
    `contextvars` context, so that no other function sees their variables. The watchdog may interrupt them as well.
    """
    coroutine = invocation._coroutine
    invocation.end()
    if coroutine is None:
        return
    doom, cut = invocation._doom, running.cut
    running.harmless, running.cut = True, False
    try:
        running.invocation = invocation
        apart(close_quietly, coroutine)
        running.invocation = None
    except BaseException:  # noqa: BLE001 - an interruption, between two attempts to close it
        running.invocation = None
    if running.cut:
        try:
            running.withdraw()
        except BaseException:  # noqa: BLE001 - the interruption itself, which is over with that
            pass
        invocation._doom = doom  # the interruption is harmless
    running.harmless, running.cut = False, cut
    if invocation._begun is not None:
        invocation._end_begun()


def failure_at(invocation: Invocation, error: ErrorTriple) -> Failure:
    """A failure at the invocation's present place in serial order."""
    return Failure(invocation._chain_id, invocation.position(), False, *error)


def cut_failure(invocation: Invocation, error: FunctionTooLong) -> Failure:
    """The failure of a function that the watchdog interrupted. Its place depends on time, so the outcome is
    recorded.
    """
    return failure_at(invocation, (CUT_CODE, *describe(error)))


def external_failure(invocation: Invocation, error: tuple[str, str]) -> Failure:
    """The failure by an external function's exception, at the place of the call."""
    return failure_at(invocation, ("aborted", *error))

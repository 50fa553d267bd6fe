"""One invocation: a context, and the data that the executor and the lock phase keep about it; and which one runs.

It is kept until its epoch closes, because the lock phase re-runs it from here. Paper sections 5.2 and 6.3 (call-graph
caching). The engine's thread records the invocation that it runs. The watchdog, on another thread, reads the record,
dooms that invocation at the same moment, and interrupts it. So only a user's code is interrupted, and the engine learns
of the interruption as soon as that code has ended, however it ended.
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
    """Shared with the watchdog. `invocation` is the one whose code runs, None while the engine's own does.

    `harmless`: what runs has no part in any outcome, such as the `finally` blocks of a function that was given up.
    `cut`: an invocation was doomed by the watchdog; the lock phase takes the flag down. `withdraw` takes back an
    interruption that has not happened yet; it may raise it. `resumed` counts how often a function was gone on with.
    """

    def __init__(self) -> None:
        self.invocation: Invocation | None = None
        self.harmless = False
        self.cut = False
        self.resumed = 0
        self.withdraw: Callable[[], None] = _nothing


CUT_CODE: Final = "cut"
"""Of a failure whose outcome is still to be recorded; never reaches a reply."""
FIRST_STEP: Final = (0).to_bytes(PATH_STEP_BYTES, "big")
_NO_CALLS: Final[list[tuple[bytes, MadeCall]]] = []
_by_path = itemgetter(0)


class Doomed(Exception):
    """Ends a function that has returned although its context had refused something."""


@native(subclassed=True)
@plain_stores
class Invocation(Context, eq=False):
    """`_caller` is the waiting invocation on this worker, None for a chain's outermost function or a remote caller.

    `_share` is as in `Call`. `_below` collects the asynchronous calls of synchronous callees (None: none yet),
    `_results` the results it was resumed with by call index. `_failed`: it ended in an exception, so that the
    asynchronous calls of its chain were never sent.
    """

    if TYPE_CHECKING:
        _footprint: Footprint = cast("Footprint", None)
        _caller: Invocation | None = None

    @property
    def synchronous(self) -> bool:
        """Its caller waits for it and keeps the chain's share."""
        return self._share < 0

    @property
    def path(self) -> bytes:
        """Its call path: two bytes a step, the call's index."""
        return self._path

    def step_path(self, index: int) -> bytes:
        """Path of its call number `index`."""
        return self._path + index.to_bytes(PATH_STEP_BYTES, "big")

    def position(self) -> bytes:
        """Where it stands now in serial order: after everything it has called so far."""
        return self._path + len(self._made).to_bytes(PATH_STEP_BYTES, "big")

    def asynchronous_calls(self) -> list[tuple[bytes, MadeCall]]:
        """Its chain's asynchronous calls in call-path order."""
        calls, path = self._calls, self._path
        if calls is None and self._below is None:
            return _NO_CALLS
        own = []
        for index, call in enumerate(calls or ()):
            if not call.synchronous:
                own.append((path + index.to_bytes(PATH_STEP_BYTES, "big"), call))
        return own if self._below is None else sorted([*own, *self._below], key=_by_path)

    def resumed_with(self, result: Result) -> None:
        """Remembers a synchronous call's result and the asynchronous calls made below it."""
        assert result.value is not None
        if result.calls:
            if self._below is None:
                self._below = []
            app = self._env.app
            self._below.extend([(path, made_call(app, spec)) for path, spec in result.calls])
        if self._results is None:
            self._results = {}
        self._results[int.from_bytes(result.path[-2:], "big")] = result.value

    def end(self) -> None:
        """It has ended: the context refuses from here on."""
        self._left = CLOSED
        self._coroutine = None


# A function that tries to store its context is told the type's name, which must be the same in every execution.
setattr(Invocation, "__name__", Context.__name__)  # noqa: B010 - a compiled class takes no assignment


def abandon(invocation: Invocation, running: Running) -> None:
    """Closes an invocation and, if it is suspended, its coroutine: the context first, so that nothing it does
    counts, and apart, so that no other function sees what its `finally` blocks set. They may be cut short as well.
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
        invocation._doom = doom  # it is harmless
    running.harmless, running.cut = False, cut
    if invocation._begun is not None:
        invocation._end_begun()


def failure_at(invocation: Invocation, error: ErrorTriple) -> Failure:
    """A failure where the invocation stands now."""
    return Failure(invocation._chain_id, invocation.position(), False, *error)


def cut_failure(invocation: Invocation, error: FunctionTooLong) -> Failure:
    """The watchdog ended its function. Where that was depends on time: the outcome must be recorded."""
    return failure_at(invocation, (CUT_CODE, *describe(error)))


def external_failure(invocation: Invocation, error: tuple[str, str]) -> Failure:
    """An external function's exception ends its transaction where it was called."""
    return failure_at(invocation, ("aborted", *error))

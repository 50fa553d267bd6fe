"""One invocation: a context with what the executor and the lock phase remember of it.

A record only; it decides nothing. It is kept until its epoch closes, because the lock phase re-runs it from here.
Paper sections 5.2 and 6.3 (call-graph caching).
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from styx.context import CallSpec, Cell, Context
from styx.execution import ErrorTriple, close_quietly
from styx.operator import FunctionSpec, Operator
from styx.partitioning import Key
from styx.worker.messages import Failure, Result

if TYPE_CHECKING:
    from styx.worker.footprint import Footprint


class Invocation(Context):
    """`caller` is the waiting invocation on this worker, None for a chain's outermost function or a remote caller.

    `below` collects the asynchronous calls of synchronous callees (None: none yet), `results` the results it was
    resumed with by call index. `failed`: it ended in an exception, so that the asynchronous calls of its chain
    were never sent.
    """

    __slots__ = (
        "below",
        "caller",
        "chain_id",
        "coroutine",
        "failed",
        "from_slot",
        "params",
        "result",
        "results",
        "share",
    )

    _env: Footprint

    def __init__(
        self,
        env: Footprint,
        operator: Operator,
        spec: FunctionSpec,
        key: Key,
        cell: Cell,
        path: bytes,
        chain: bytes,
        chain_id: bytes,
        params: bytes,
        share: int,
        called: int,
        from_slot: int,
    ) -> None:
        # Context.__init__, written out: this runs for every function call.
        self.key = key
        self._env = env
        self._operator = operator
        self._spec = spec
        self._cell = cell
        self._path = path
        self._chain = chain
        self._calls = []
        self._called = called
        self._closed = False
        self._doom = None
        self._operations = 0
        self._externals = 0
        self._uuids = 0
        self._random = None
        self.chain_id = chain_id
        self.params = params
        self.share = share
        self.from_slot = from_slot
        self.caller: Invocation | None = None
        self.coroutine: Coroutine[Any, Any, Any] | None = None
        self.below: list[tuple[bytes, CallSpec]] | None = None
        self.results: dict[int, bytes] | None = None
        self.result: bytes | None = None
        self.failed = False

    @property
    def synchronous(self) -> bool:
        """Its caller waits for it and keeps the chain's share."""
        return self.share < 0

    @property
    def path(self) -> bytes:
        """Its call path: two bytes a step, the call's index."""
        return self._path

    @property
    def operator_name(self) -> str:
        return self._operator.name

    @property
    def spec(self) -> FunctionSpec:
        return self._spec

    @property
    def calls(self) -> list[CallSpec]:
        """The calls it made, in order."""
        return self._calls

    def step_path(self, index: int) -> bytes:
        """Path of its call number `index`."""
        return self._path + index.to_bytes(2, "big")

    def position(self) -> bytes:
        """Where it stands now in serial order: after everything it has called so far."""
        return self._path + len(self._calls).to_bytes(2, "big")

    def asynchronous_calls(self) -> list[tuple[bytes, CallSpec]]:
        """Its chain's asynchronous calls in call-path order."""
        own = [(self._path + i.to_bytes(2, "big"), call) for i, call in enumerate(self._calls) if not call.synchronous]
        if not self.below:
            return own
        return sorted([*own, *self.below])

    def resumed_with(self, result: Result) -> None:
        """Remembers a synchronous call's result and the asynchronous calls made below it."""
        assert result.value is not None
        if result.calls:
            if self.below is None:
                self.below = []
            self.below.extend(result.calls)
        if self.results is None:
            self.results = {}
        self.results[int.from_bytes(result.path[-2:], "big")] = result.value

    def close(self) -> None:
        """Ends it: the context refuses from here on."""
        self._closed = True
        self.coroutine = None


def abandon(invocation: Invocation) -> None:
    """Closes an invocation and, if it is suspended, its coroutine: the context first, so that nothing it does
    counts.
    """
    coroutine = invocation.coroutine
    invocation.close()
    if coroutine is not None:
        close_quietly(coroutine)


def failure_at(invocation: Invocation, error: ErrorTriple) -> Failure:
    """A failure where the invocation stands now."""
    return Failure(invocation.chain_id, invocation.position(), False, *error)


def external_failure(invocation: Invocation, error: tuple[str, str]) -> Failure:
    """An outside function's exception ends its transaction where it was called."""
    return failure_at(invocation, ("aborted", *error))

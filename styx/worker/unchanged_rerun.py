"""A conflicting transaction run again on one slot, for as long as its calls are the cached ones: the usual case.

Without synchronous calls, and with every call the same as before, exactly the cached invocations run, in call-path
order. A part of one invocation runs in the same way if its calls, or its arguments, are others. Anything else (an
exception, a wait) ends the attempt without a trace, and `styx.worker.rerun` begins from the start. Paper section 6.3.
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextvars import Context as Variables
from operator import attrgetter
from typing import Annotated, Any, Final, cast

import msgspec

from styx.model.access import Access
from styx.model.cell import Cell, Environment
from styx.model.context import CLOSED
from styx.model.execution import encode_result, start, unfinished
from styx.model.table_names import holds_values
from styx.native.compiled import FirstSteps
from styx.native.interpreted import RETURNED, USUAL, native, plain_stores
from styx.relational.index_range import IndexRange, RowKey
from styx.state.table import Reader
from styx.worker.call_graph import Entry
from styx.worker.current_cell import current_sibling, read_current
from styx.worker.footprint import Footprint, Writes
from styx.worker.invocation import Invocation, Running, abandon
from styx.worker.own_variables import apart
from styx.worker.range_read import rows_of
from styx.worker.slot import Slot

_UNREAD: Final = b"unread"
_by_path = attrgetter("_path")


@native
@plain_stores
class _Cell(msgspec.Struct, Cell, eq=False, gc=False):
    """One entity as this transaction sees it: own writes first, then writes of lower transactions, then the state."""

    entity: tuple[str, Any]
    current: Writes
    found: Reader
    value: bytes | None = _UNREAD
    written: bool = False

    def read(self, chain: bytes) -> bytes | None:
        value = self.value
        if value is _UNREAD:
            entity = self.entity
            value = self.current.get(entity, _UNREAD)
            if value is _UNREAD:
                value = self.found(entity[1])
            self.value = value
        return value

    def write(self, chain: bytes, value: bytes | None) -> None:
        self.value = value
        self.written = True

    def access(self, access: Access) -> Any:
        raise AssertionError("what touches many entities at once is run again by the general way")

    def sibling(self, environment: Environment, table: str, key: Any) -> Cell:
        footprint = cast("Footprint", environment)
        if holds_values(table) and _runs_on(footprint, table, key):
            raise RuntimeError("an entity's value beside a function on it is read by the general way")
        if footprint.beside is None:
            footprint.beside = {}
        slot = footprint.here
        assert slot is not None, "a transaction without a slot is not run again"
        return current_sibling(footprint, footprint.beside, self.current, slot, table, key)

    def scan(self, environment: Environment, wanted: IndexRange, chain: bytes) -> list[tuple[RowKey, bytes]]:
        return rows_of(read_current(environment, wanted))

    def count(self, environment: Environment, wanted: IndexRange, chain: bytes) -> int:
        return len(read_current(environment, wanted))


def unchanged_rerun(
    footprint: Footprint,
    slot: Slot,
    current: Writes,
    first_steps: FirstSteps,
    variables: Variables,
    running: Running,
) -> tuple[bytes | None, Writes] | Invocation | None:
    """Runs the cached calls again. Returns (the root's result, writes on top of `current`); the invocation if it is the
    only one, has returned and has made other calls; None if the transaction behaves differently or the watchdog has
    interrupted it.

    The functions run in `variables`, where no context variable is set yet.
    """
    invocations = footprint.invocations
    if footprint.accesses is not None:
        return None
    if len(invocations) == 1:
        cached = invocations[0]
        if cached._share < 0:
            return None
        cell = _cell(cached, slot, current)
        again = _again(cached, footprint, cell, slot.index, first_steps, running)
        if again is None:
            return None
        if again._calls != cached._calls:
            return again
        writes: Writes = {cell.entity: cell.value} if cell.written else {}
        return again._result, writes if footprint.beside is None else {**writes, **footprint.beside}
    result: bytes | None = None
    cells: dict[tuple[str, Any], _Cell] = {}
    for cached in sorted(invocations, key=_by_path):
        if cached._share < 0:
            return None
        cell = _cell(cached, slot, current)
        cell = cells.setdefault(cell.entity, cell)
        if not len(variables):
            again = _again(cached, footprint, cell, slot.index, first_steps, running)
        else:  # by the one before
            again = apart(_again, cached, footprint, cell, slot.index, first_steps, running)
        if again is None or again._calls != cached._calls:
            return None
        if not cached._path:
            result = again._result
    writes = {entity: cell.value for entity, cell in cells.items() if cell.written}
    return result, writes if footprint.beside is None else {**writes, **footprint.beside}


def single_rerun(
    footprint: Footprint, entry: Entry, slot: Slot, current: Writes, first_steps: FirstSteps, running: Running
) -> Invocation | None:
    """Runs the only call that other slots make on this one. Returns None if it waits, raises or is interrupted."""
    invocations = footprint.invocations
    kind: Annotated[type[Invocation], USUAL] = type(invocations[0]) if invocations else Invocation
    operator = entry.function.operator
    cell = _Cell((operator, entry.key), current, slot.found.get(operator) or slot.find(operator))
    call = kind(
        entry.key,
        footprint,
        entry.function,
        cell,
        entry.path,
        entry.chain,
        0,
        entry.chain,
        entry.params,
        -1 if entry.synchronous else 0,
        0,
        slot.index,
        footprint,
    )
    return _again(call, footprint, cell, slot.index, first_steps, running)


def written_by(footprint: Footprint, invocation: Invocation) -> Writes:
    """What a transaction's invocation that one of these functions has returned has written."""
    cell = invocation._cell
    assert isinstance(cell, _Cell)
    writes: Writes = {cell.entity: cell.value} if cell.written else {}
    return writes if footprint.beside is None else {**writes, **footprint.beside}


def _runs_on(footprint: Footprint, operator: str, key: Any) -> bool:
    """Whether a function of the transaction runs on the entity: what it writes is its cell's alone until the end."""
    return any(cached._spec.operator == operator and cached._key == key for cached in footprint.invocations)


def _cell(cached: Invocation, slot: Slot, current: Writes) -> _Cell:
    operator = cached._spec.operator
    found = slot.found.get(operator)
    return _Cell((operator, cached._key), current, slot.find(operator) if found is None else found)


def _again(
    cached: Invocation, footprint: Footprint, cell: _Cell, slot: int, first_steps: FirstSteps, running: Running
) -> Invocation | None:
    spec, params, path = cached._spec, cached._params, cached._path
    chain = cached._chain_id
    # An invocation that the execution step measured is measured here as well.
    kind: Annotated[type[Invocation], USUAL] = type(cached)
    invocation = kind(
        cached._key,
        footprint,
        spec,
        cell,
        path,
        chain,
        footprint.limits.operations_max,
        chain,
        params,
        cached._share,
        0,
        slot,
        footprint,
    )
    coroutine: Coroutine[Any, Any, Any] | None = None
    request: Any = None
    try:
        running.invocation = invocation
        coroutine = start(spec, invocation, params)
        take = first_steps.take
        request = take(coroutine)
        if request is RETURNED and (not path or cached._share < 0):
            invocation._result = encode_result(spec, first_steps.result[0], footprint.limits)
        first_steps.result[0] = None
        running.invocation = None
    except BaseException:  # noqa: BLE001 - the general way raises it again, and knows what it means
        running.invocation = None
        request = None
    if invocation._doom is not None:
        try:
            running.withdraw()
        except BaseException:  # noqa: BLE001 - an interruption, which is over with that
            pass
    if request is not RETURNED:
        invocation._coroutine = coroutine
        abandon(invocation, running)
        first_steps.renew()
        return None
    invocation._left = CLOSED
    return invocation if unfinished(invocation) is None else None

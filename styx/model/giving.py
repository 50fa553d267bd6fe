"""Giving a call for later, and withdrawing one: what is behind `ctx.after_commit`, `ctx.after` and `ctx.cancel`.

The call is checked where it is given, as one that is made at once would be: its function exists, its key and arguments
fit. It becomes an entry of the entity's agenda (`styx.model.agenda`), and nothing is called here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.errors import CallDepthExceeded
from styx.model.agenda import (
    AT_ONCE,
    NAMED,
    USUAL_RETRY,
    AgendaEntry,
    Retry,
    checked_delay,
    checked_name,
    encode_entry,
    entry_key,
    microseconds,
)
from styx.model.function_spec import MadeCall
from styx.model.lane import in_lane
from styx.model.serial_id import PLACE_BYTES_MAX, entry_id
from styx.model.serial_place import serial_place
from styx.native.compiled import calls_more
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.cell import Cell
    from styx.model.context import Context

_NO_DELAY: Any = object()


def give(
    context: Context,
    operator: Any,
    function: Any,
    key: Any,
    params: Any,
    retry: Any,
    delay: Any = _NO_DELAY,
    name: Any = None,
) -> None:
    """Writes an entry of the agenda of the context's entity; counts as one operation."""
    method = "after_commit" if delay is _NO_DELAY else "after"
    may_write(context, method)
    made = checked_call(context, operator, function, key, params)
    try:
        due_us = AT_ONCE if delay is _NO_DELAY else context._env.timestamp_us + checked_delay(delay)
        pauses = USUAL_RETRY if retry is None else _checked_retry(retry)
        last = "" if name is None else NAMED + checked_name(name)
    except BaseException as error:  # noqa: BLE001 - showing what was given can run code of the app
        raise context._doomed(error) from None
    called, pause_us = made.function, microseconds(pauses.first)
    put_entry(context, due_us, called.operator, called.name, made.key, made.params, pauses.attempts, pause_us, last)


def checked_call(context: Context, operator: Any, function: Any, key: Any, params: Any) -> MadeCall:
    """A call that is given for later, checked as one that is made at once would be."""
    # This transaction does not make the call, so no graph forbids it. Nor may the call come to its limit: how many
    # others there were before is known exactly only where all of them run one after the other.
    spec, called = context._spec, context._called
    context._spec, context._called = spec if spec.graph is None else spec.graph.outside, 0
    try:
        return context._made_call(False, operator, function, key, params)
    finally:
        context._spec, context._called = spec, called


def put_entry(
    context: Context,
    due_us: int,
    operator: str,
    function: str,
    key: Any,
    params: bytes,
    attempts: int,
    first_pause_us: int,
    last: str = "",
    lane: str = "",
) -> None:
    """Writes an entry of the agenda of the context's entity: under `last`, or under its id; in a `lane`, if any."""
    env, its_id = context._env, new_id(context, lane)
    given_us = env.timestamp_us
    entry = AgendaEntry(due_us, its_id, given_us, operator, function, key, params, attempts, first_pause_us)
    _cell_of(context, last or its_id).write(context._chain, encode_entry(entry))


def new_id(context: Context, lane: str = "") -> str:
    """The id of the next entry that the function gives, in a `lane` if there is one."""
    env, place = context._env, serial_place(context)
    epoch, part = env.place()
    context._ids += 1
    its_id = entry_id(epoch, part, env.tid, place, context._ids)
    if not lane:
        return its_id
    if len(place) > PLACE_BYTES_MAX:
        raise context._doomed(
            CallDepthExceeded(
                f"{context._where()} was called through too many others to emit an event whose subscribers are called "
                "in order after the commit: emit it less deep, or handle it in the same transaction"
            )
        )
    return in_lane(its_id, lane)


def withdraw(context: Context, name: Any) -> bool:
    """Removes a named entry; whether there was one."""
    may_write(context, "cancel")
    try:
        last = NAMED + checked_name(name)
    except BaseException as error:  # noqa: BLE001 - showing what was given can run code of the app
        raise context._doomed(error) from None
    cell = _cell_of(context, last)
    if cell.read(context._chain) is None:
        return False
    cell.write(context._chain, None)
    return True


def call_encoded(context: Context, operator: str, function: str, key: Any, data: bytes) -> None:
    """An asynchronous call whose arguments are encoded already, as the first one of a transaction."""
    env = context._env
    try:
        spec = env.app.resolve(operator, function)
        spec = env.app.starts.get(spec, spec)
        checked = spec.keys.check(tuple(key) if isinstance(key, list) else key)
        slot = spec.keys.slot_of(checked, env.n_slots)
    except BaseException as error:  # noqa: BLE001 - a partition_key's own code can run here
        raise context._doomed(error) from None
    context._called += 1 + calls_more(data, env.limits)
    context._calls = [*(context._calls or ()), MadeCall(False, slot, spec, checked, data)]


def may_write(context: Context, method: str) -> None:
    if context._left <= 0:
        context._refuse()
    context._left -= 1
    if context._spec.read_only:
        raise context._violation(method)


def _checked_retry(retry: Any) -> Retry:
    if not isinstance(retry, Retry):
        raise TypeError(f"retry= takes a styx.Retry, such as Retry(attempts=3): got {shown(retry)}")
    return retry


def _cell_of(context: Context, last: str) -> Cell:
    return context._cell.sibling(context._env, context._spec.agenda_table, entry_key(context._key, last))

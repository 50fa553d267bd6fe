"""The write that an emission is: of the emitting entity's own table of events, under the event's id. The commit hands
it on (`styx.worker.emissions`), and no slot keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from styx.errors import CallDepthExceeded
from styx.model.agenda import entry_key
from styx.model.event import EmittedEvent
from styx.model.limits import EVENT_PLACE_BYTES_MAX
from styx.model.serial_id import event_id
from styx.model.serial_place import serial_place

if TYPE_CHECKING:
    from styx.model.context import Context

_encode = msgspec.msgpack.Encoder().encode


def new_event_id(context: Context) -> str:
    """The id of what the function emits now; raises `CallDepthExceeded`."""
    env = context._env
    epoch, part = env.place()
    context._ids += 1
    its_id = event_id(epoch, part, env.tid, serial_place(context), context._ids)
    if len(its_id) > EVENT_PLACE_BYTES_MAX:
        raise context._doomed(
            CallDepthExceeded(
                f"{context._where()} was called through too many others to emit an event: its id, which names its "
                f"place among all calls, would have {len(its_id)} bytes, and the limit is {EVENT_PLACE_BYTES_MAX}: "
                "emit it less deep"
            )
        )
    return its_id


def emit_here(context: Context, emitted: EmittedEvent) -> str:
    """Writes an event, which was checked, of the context's entity, and gives its id; raises as `new_event_id`."""
    env, its_id = context._env, new_event_id(context)
    cell = context._cell.sibling(env, context._spec.events_table, entry_key(context._key, its_id))
    cell.write(context._chain, _encode(emitted))
    return its_id

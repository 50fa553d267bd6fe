"""Where an event is emitted: at the entity that emits it, or at another key, `ctx.emit(…, key=…)`.

The second is one asynchronous call to the slot of that key, which emits it there. So the events of one key are in one
partition and in serial order, whoever emits them. The call is of an internal operator, whose entities are keys of every
kind, each as its JSON. It keeps nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from styx.errors import BadKey, CallDepthExceeded
from styx.model.agenda import entry_key
from styx.model.event import EmittedEvent, encode_emitted, events_of
from styx.model.internal_operator import INTERNAL_MARK, InternalOperator
from styx.model.limits import EVENT_PLACE_BYTES_MAX, KEY_BYTES_MAX
from styx.model.partitioning import KeySpace, KeyType
from styx.model.serial_place import place_text, serial_place
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.context import Context

_NAME: Final = f"{INTERNAL_MARK}events"
_FUNCTION: Final = "emit_called"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(str | int | list[str | int]).decode


def text_of(key: Any) -> str:
    """A key as the internal operator has it; raises `BadKey`."""
    parts = key if type(key) in (tuple, list) else (key,)
    try:
        if parts and all(type(part) is str or (type(part) is int and _fits(part)) for part in parts):
            text = _encode(key)
            if len(text) <= KEY_BYTES_MAX:
                return text.decode()
    except ValueError:  # msgspec's, and that of a text that is not valid Unicode
        pass
    raise BadKey(
        f"ctx.emit(…, key=…) takes a str, an int of 64 bits or a tuple of them, of at most {KEY_BYTES_MAX} bytes: got "
        f"{shown(key)}"
    )


def _fits(number: int) -> bool:
    return -(2**63) <= number < 2**63


def key_of(text: str) -> str | int | list[str | int]:
    """The key that `text_of` was given; a tuple as a list."""
    key: str | int | list[str | int] = _decode(text)
    return key


ELSEWHERE: Final = InternalOperator(_NAME, str, KeySpace(_NAME, KeyType(str), None, key_of))
"""Its partitions are those that an operator's entities of the same keys have, without a `partition_key`."""


def event_id(epoch: int, part: int, tid: int, place: bytes, number: int) -> str:
    """The id of what an invocation emits as its entry `number` at a place of its transaction, `serial_place`.

    Ids sort by epoch, then by the `part` of it that commits (`Environment.place`), then by transaction, place in it and
    number: the serial order. No two events have the same.
    """
    return f"{epoch:012x}{part:d}{tid:016x}.{place_text(place)}.{number:08x}"


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
    cell = context._cell.sibling(env, events_of(context._spec.operator), entry_key(context._key, its_id))
    cell.write(context._chain, encode_emitted(emitted))
    return its_id


async def emit_called(ctx: Context, event: str, version: int, operator: str, time_us: int, payload: bytes) -> None:
    """Emits what another function has checked."""
    emit_here(ctx, EmittedEvent(event, version, operator, time_us, payload))


ELSEWHERE.register(emit_called)


def emit_at(context: Context, emitted: EmittedEvent, key: Any) -> None:
    """Calls for the event to be emitted at `key`; raises `BadKey`, and what any call raises."""
    try:
        text = text_of(key)
    except BadKey as error:
        raise context._doomed(error) from None
    context.call_async(
        ELSEWHERE,  # type: ignore[arg-type]  # no operator of the app's
        _FUNCTION,
        text,
        (emitted.event, emitted.version, emitted.operator, emitted.time_us, emitted.payload),
    )

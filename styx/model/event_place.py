"""Where an event is emitted: at the entity that emits it, or at another key, `ctx.emit(…, key=…)`.

The second is one asynchronous call to the slot of that key, which emits it there. So the events of one key are in one
partition and in serial order, whoever emits them. The call is of an internal operator, whose entities are keys of every
kind, each as its JSON. It keeps nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from styx.errors import BadKey
from styx.model.event import EmittedEvent
from styx.model.event_write import emit_here
from styx.model.internal_operator import INTERNAL_MARK, InternalOperator
from styx.model.key_text import key_of, text_of
from styx.model.partitioning import KeySpace, KeyType

if TYPE_CHECKING:
    from styx.model.context import Context

_NAME: Final = f"{INTERNAL_MARK}events"
_FUNCTION: Final = "emit_called"


ELSEWHERE: Final = InternalOperator(_NAME, str, KeySpace(_NAME, KeyType(str), None, key_of))
"""Its partitions are those that an operator's entities of the same keys have, without a `partition_key`."""


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

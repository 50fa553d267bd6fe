"""Emitting an event: what is behind `ctx.emit`.

The value is checked and encoded where it is emitted. It becomes a write of the transaction, under a key of its own, and
nothing leaves the engine here: the commit hands it on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from styx.errors import BadArguments, OperationLimitExceeded
from styx.model.event import EVENTS_PER_FUNCTION_MAX, EmittedEvent, Event
from styx.model.event_form import EventForm
from styx.model.event_place import emit_at
from styx.model.event_write import emit_here, new_event_id
from styx.model.kept_event import keep
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.app import App
    from styx.model.context import Context


def emit(context: Context, event: Any, value: Any, key: Any) -> None:
    """Emits an event of the context's entity, or of `key`; counts as one operation. Raises `BadArguments` for an event
    that the app does not have, `BadKey` for what is no key, `UnsupportedValue` and `ValueTooLarge` as `Event.encode`.
    """
    if context._left <= 0:
        context._refuse()
    context._left -= 1
    if context._spec.read_only:
        raise context._violation("emit")
    env = context._env
    try:
        declared = declared_event(env.app, event)
        form: EventForm = declared.form
        payload = form.encode(value)
        if context._emitted >= EVENTS_PER_FUNCTION_MAX:
            raise OperationLimitExceeded(
                f"{context._where()} emitted more than {EVENTS_PER_FUNCTION_MAX} events: an endless loop?"
            )
    except BaseException as error:  # noqa: BLE001 - a type's own code can run here
        raise context._doomed(error) from None
    context._emitted += 1
    emitted = EmittedEvent(declared.name, declared.version, context._spec.operator, env.timestamp_us, payload)
    tables = env.app.kept.get(declared.name) if declared.rows else None
    if key is None:
        place = emit_here(context, emitted)
    else:
        place = new_event_id(context) if tables is not None else ""
        emit_at(context, emitted, key)
    if tables is not None:
        keep(context, declared, tables, place, value)
    delivery = env.app.event_deliveries.get(declared.name)
    if delivery is not None:
        delivery.emitted(context, payload)


def declared_event(app: App, wanted: Any) -> Event[Any]:
    """An event of the app's; raises `BadArguments` that lists what there is."""
    if isinstance(wanted, Event):
        if app.events.get(wanted.name) is wanted:
            return wanted
        told = f"{wanted!r}, which app {app.name!r} does not have"
    else:
        told = f"{shown(wanted)}, which is not an Event"
    known = ", ".join(app.events) or "none"
    raise BadArguments(f"ctx.emit got {told}: declare it in App(events=[…]), which has: {known}")

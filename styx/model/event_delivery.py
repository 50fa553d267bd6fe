"""What an emission leads to inside the app: calls of the functions that subscribe to the event.

They are made where the event is emitted, by its transaction. A call in the same transaction is an asynchronous call as
any other. One after the commit becomes an entry of an agenda, in a lane (`styx.model.lane`): of the emitting entity's
agenda; or, with `ordered_by`, of that of one entity for the group, to which one asynchronous call brings it. Nothing is
delivered here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from styx.errors import BadKey, CallDepthExceeded, CallLimitExceeded, OutsideGraph, UnsupportedValue, describe
from styx.model.agenda import AT_ONCE, Retry, microseconds
from styx.model.event import Event
from styx.model.event_form import EventForm
from styx.model.function_reference import FunctionReference
from styx.model.function_spec import QUEUE_FUNCTION, FunctionSpec
from styx.model.giving import checked_call, may_write, put_entry
from styx.model.graph_place import full_name
from styx.model.key_text import text_of
from styx.model.lane import group_text, holder, lane_name
from styx.model.subscription import Subscription, named
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.context import Context


class EventDelivery:
    """The subscriptions to one event, in the order in which they are called, and the function that alone emits it; None
    if any may.
    """

    __slots__ = ("_form", "_publishes", "event", "publisher", "subscriptions")

    def __init__(
        self, event: Event[Any], subscriptions: tuple[Subscription, ...], publisher: FunctionReference | None
    ) -> None:
        self.event = event
        self._form: EventForm = event.form
        self.publisher = publisher
        self._publishes: FunctionSpec | None = None  # the last that was found to be the publisher
        self.subscriptions = subscriptions

    def emitted(self, context: Context, payload: bytes) -> None:
        """Calls the subscribers, or gives the calls for later; raises what dooms the transaction."""
        spec = context._spec
        if self.publisher is not None and spec is not self._publishes:
            if str(self.publisher) != full_name(spec):
                raise context._doomed(
                    OutsideGraph(
                        f"{context._where()} emitted event {self.event.name!r}, which {self.publisher} alone "
                        "publishes, as a graph declares: call that function, or emit another event"
                    )
                )
            self._publishes = spec
        place = spec.graph
        ends = place is not None and place.terminal
        for each in self.subscriptions:
            value = self._form.decode(payload)  # its own: the functions of the app could change it
            key = context._key if each.key is None else _made(context, each, "key", each.key, value)
            if each.after_commit or ends:
                _give(context, each, key, value)
            else:
                self._call(context, each, key, value)

    def _call(self, context: Context, subscription: Subscription, key: Any, value: Any) -> None:
        try:
            context.call_async(subscription.operator, subscription.function, key, (value,))
        except (CallDepthExceeded, CallLimitExceeded) as error:
            told = (
                f"event {self.event.name!r}, emitted by {context._where()}, is handled in the same transaction by "
                f"{named(self.subscriptions)}: {error}. Events that lead to each other without end need "
                "after_commit=True"
            )
            too_deep = isinstance(error, CallDepthExceeded)
            context._doom = CallDepthExceeded(told) if too_deep else CallLimitExceeded(told)
            raise context._doom from None


def event_deliveries(
    events: Mapping[str, Event[Any]],
    subscribers: Mapping[str, tuple[Subscription, ...]],
    publishers: Mapping[str, FunctionReference],
) -> dict[str, EventDelivery]:
    """What the emission of each event leads to, by its name; nothing for one without subscriptions and publisher."""
    return {
        name: EventDelivery(event, subscribers.get(name, ()), publishers.get(name))
        for name, event in events.items()
        if name in subscribers or name in publishers
    }


def _made(context: Context, subscription: Subscription, option: str, function: Any, value: Any) -> Any:
    """What a function of the app makes of the event; the error says whose it is."""
    try:
        return function(value)
    except BaseException as error:  # noqa: BLE001 - the app's code: it can raise anything
        kind, message = describe(error)
        raise context._doomed(UnsupportedValue(f"{subscription!r}: {option}= raised {kind}: {message}")) from None


# After the commit ------------------------------------------------------------------------------------------


def _give(context: Context, subscription: Subscription, key: Any, value: Any) -> None:
    """Counts as one operation."""
    may_write(context, "emit")
    if subscription.ordered_by is None:
        call = checked_call(context, subscription.operator, subscription.function, key, (value,))
        lane = lane_name(subscription.name, "of", context._spec.operator, text_of(context._key))
        _put(context, call.function, call.key, call.params, subscription.retry, lane)
        return
    group = _made(context, subscription, "ordered_by", subscription.ordered_by, value)
    call = checked_call(context, subscription.operator, subscription.function, key, (value,))
    try:
        lane, at = lane_name(subscription.name, "by", group_text(group)), holder(subscription.operator, group)
    except BaseException as error:  # noqa: BLE001 - what was returned is of the app
        raise context._doomed(error) from None
    retry = subscription.retry
    arguments = (call.function.name, call.key, call.params, retry.attempts, microseconds(retry.first), lane)
    try:
        context.call_async(subscription, QUEUE_FUNCTION, at, arguments)  # type: ignore[arg-type]  # in `App.resolved`
    except BadKey as error:
        told = f"{subscription!r}: the order of group {shown(group)} is kept beside the entity {shown(at)}: {error}"
        context._doom = BadKey(told)
        raise context._doom from None


def _put(context: Context, function: FunctionSpec, key: Any, params: bytes, retry: Retry, lane: str) -> None:
    pause_us = microseconds(retry.first)
    put_entry(context, AT_ONCE, function.operator, function.name, key, params, retry.attempts, pause_us, lane=lane)

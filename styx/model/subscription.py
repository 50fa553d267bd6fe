"""A subscription: a function of an operator that is called for each event of one kind, `@stock.on(price_changed, …)`.

The call is made where the event is emitted: in the same transaction, or after its commit, then in order. What is
declared here is checked when an app takes the operator. `styx.model.event_delivery` makes the calls.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from styx.errors import ConfigurationError
from styx.model.agenda import USUAL_RETRY, Retry, microseconds
from styx.model.event import Event
from styx.model.function_reference import FunctionReference
from styx.values.codec import shown
from styx.values.declared_types import type_text

if TYPE_CHECKING:
    from styx.model.operator import Operator

SUBSCRIPTIONS_MAX: Final = 100
"""The subscriptions to one event."""
_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Subscription:
    """The function `function` of `operator` is called for each `event`, on the entity that `key` makes of it: the
    emitting entity's key if it is None.

    `after_commit`: in a transaction of its own, tried as `retry` says. The calls for the events of one emitting entity,
    or with `ordered_by` those of one group, are then made one after the other. `name` is the same in every version of
    the app. Raises `ConfigurationError`.
    """

    __slots__ = ("after_commit", "event", "function", "key", "name", "operator", "ordered_by", "retry")

    def __init__(
        self,
        event: Event[Any],
        operator: Operator,
        function: str,
        key: Callable[[Any], Any] | None,
        after_commit: bool,
        retry: Retry | None,
        ordered_by: Callable[[Any], Any] | None,
    ) -> None:
        what = f"{operator.name}.{function}"
        if not isinstance(event, Event):
            raise ConfigurationError(f"{what} is to be called for {shown(event)}, which is not an Event")
        what = f"{what} on event {event.name!r}"
        if type(after_commit) is not bool:
            raise ConfigurationError(f"{what}: after_commit= is True or False, got {shown(after_commit)}")
        self.name = f"{operator.name}.{function}<{event.name}"
        self.event = event
        self.operator = operator
        self.function = function
        self.key = _function_of_event(what, "key", key)
        self.after_commit = after_commit
        self.ordered_by = _function_of_event(what, "ordered_by", ordered_by)
        if retry is not None and not isinstance(retry, Retry):
            raise ConfigurationError(f"{what}: retry= takes a styx.Retry, such as Retry(3): got {shown(retry)}")
        if not after_commit and (retry is not None or ordered_by is not None):
            given = "retry=" if retry is not None else "ordered_by="
            raise ConfigurationError(
                f"{what}: {given} is for calls after the commit: add after_commit=True. In the same transaction the "
                "call is part of it, in its order, and fails with it"
            )
        self.retry = USUAL_RETRY if retry is None else retry

    @property
    def given(self) -> dict[str, Any]:
        """The arguments of `Operator.on`, and the function's name."""
        later = {"after_commit": True, "retry": self.retry, "ordered_by": self.ordered_by} if self.after_commit else {}
        return {"event": self.event, "function": self.function, "key": self.key, **later}

    @property
    def reference(self) -> FunctionReference:
        """The function that is called."""
        return FunctionReference(self.operator.name, self.function)

    def described(self) -> str:
        """What is declared, as a line; functions of the event as whether there are any."""
        how = "" if self.key is None else ", key="
        if self.after_commit:
            ordered = "" if self.ordered_by is None else ", ordered_by="
            pause_us = microseconds(self.retry.first)
            how += f", after the commit{ordered}, {self.retry.attempts} attempts, {pause_us} us"
        return f"{self.function} on {self.event.name}{how}"

    def __repr__(self) -> str:
        return f"<{self.reference} on {self.event.name!r}>"


def _function_of_event(what: str, option: str, given: Any) -> Any:
    """A plain function of one argument, or None; raises `ConfigurationError`."""
    if given is None:
        return None
    if not callable(given) or inspect.iscoroutinefunction(given) or inspect.isgeneratorfunction(given):
        raise ConfigurationError(
            f"{what}: {option}= takes a plain function of the event, such as lambda e: e.product: got {shown(given)}"
        )
    try:
        inspect.signature(given).bind(None)
    except TypeError:
        raise ConfigurationError(f"{what}: the function of {option}= must take one argument, the event") from None
    except ValueError:  # a function of C may not tell
        pass
    return given


def check_subscriber(operator: str, func: Any) -> None:
    """Raises `ConfigurationError` for a function that cannot be called with an event alone."""
    parameters = list(inspect.signature(func).parameters.values())[1:]
    needed = [each for each in parameters if each.default is each.empty and each.kind in _POSITIONAL]
    named = [each for each in parameters if each.default is each.empty and each.kind is each.KEYWORD_ONLY]
    takes_one = bool(parameters) and parameters[0].kind in _POSITIONAL
    if len(needed) > 1 or named or not takes_one:
        raise ConfigurationError(
            f"{operator}.{func.__name__} is to be called for events: it takes the context and the event, as in "
            f"`async def {func.__name__}(ctx, event: …)`"
        )


# Those of an app -------------------------------------------------------------------------------------------


def subscribers(
    app: str, operators: Mapping[str, Operator], events: Mapping[str, Event[Any]]
) -> dict[str, tuple[Subscription, ...]]:
    """The subscriptions to each event by its name, in the order of the operators and of the declarations; raises
    `ConfigurationError` for those that do not fit the app's events.
    """
    found: dict[str, list[Subscription]] = {}
    for operator in operators.values():
        for each in operator.subscriptions:
            _check(app, each, events)
            found.setdefault(each.event.name, []).append(each)
    for name, subscriptions in found.items():
        if len(subscriptions) > SUBSCRIPTIONS_MAX:
            raise ConfigurationError(
                f"app {app!r}: event {name!r} has {len(subscriptions)} subscriptions; {SUBSCRIPTIONS_MAX} are the limit"
            )
    return {name: tuple(subscriptions) for name, subscriptions in found.items()}


def _check(app: str, subscription: Subscription, events: Mapping[str, Event[Any]]) -> None:
    event, reference = subscription.event, subscription.reference
    if events.get(event.name) is not event:
        known = ", ".join(events) or "none"
        raise ConfigurationError(
            f"app {app!r}: {reference} is called for {event!r}, which the app does not have: declare it in "
            f"App(events=[…]), which has: {known}"
        )
    parameter = next(iter(subscription.operator.functions[subscription.function].signature.parameters))
    if parameter.annotation not in (event.type, Any, parameter.empty):
        raise ConfigurationError(
            f"app {app!r}: {reference} is called for {event!r}, and takes {type_text(parameter.annotation)}: annotate "
            f"{parameter.name!r} with the event's type"
        )


def named(subscriptions: Iterable[Subscription]) -> str:
    """The functions, for messages."""
    return ", ".join(dict.fromkeys(str(each.reference) for each in subscriptions))

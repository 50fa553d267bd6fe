"""Subscriptions as they are declared, and what is refused when they are, or when an app takes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from styx import App, ConfigurationError, Context, Event, Operator, Retry
from styx.model.subscription import SUBSCRIPTIONS_MAX


class Paid(msgspec.Struct):
    order: str
    amount: int


paid: Event[Paid] = Event("paid", Paid)
other: Event[int] = Event("other", int)


async def handle(ctx: Context, event: Paid) -> None: ...


def subscribed(func: Any = handle, event: Any = paid, **given: Any) -> Operator:
    operator = Operator("stock")
    operator.on(event, **given)(func)
    return operator


def built(*operators: Operator, events: Any = (paid, other)) -> App:
    return App("shop", operators, events=events)


# What is right ---------------------------------------------------------------------------------------------


def test_a_subscriber_is_a_registered_function() -> None:
    operator = subscribed(key=lambda event: event.order)
    assert operator.function(handle).name == "handle"
    assert len(built(operator).event_deliveries["paid"].subscriptions) == 1


def test_a_function_may_handle_several_events() -> None:
    operator = Operator("stock")

    both: Any = paid, other

    @operator.on(both[0])
    @operator.on(both[1], after_commit=True)
    async def note(ctx: Context, event: Any) -> None: ...

    assert built(operator).event_deliveries.keys() == {"paid", "other"}


def test_a_registered_function_keeps_its_hints() -> None:
    operator = Operator("stock")

    @operator.on(other)
    @operator.register(local=True)
    async def note(ctx: Context, event: int, more: int = 0) -> None: ...

    assert operator.function(note).local


def test_subscriptions_are_in_the_order_of_their_declaration() -> None:
    first, second = subscribed(), Operator("audit")
    second.on(paid)(handle)
    names = [str(each.reference) for each in built(second, first).event_deliveries["paid"].subscriptions]
    assert names == ["audit.handle", "stock.handle"]


def test_an_app_without_subscriptions_has_none() -> None:
    assert not built(Operator("stock")).event_deliveries


def test_what_was_refused_is_not_registered() -> None:
    operator: Any = Operator("stock")
    with pytest.raises(ConfigurationError):
        operator.on(paid)(no_event)
    assert not operator.functions


# What is wrong ---------------------------------------------------------------------------------------------


async def no_event(ctx: Context) -> None: ...
async def two_events(ctx: Context, event: Paid, more: int) -> None: ...
async def by_name(ctx: Context, event: Paid, *, more: int) -> None: ...
async def only_by_name(ctx: Context, *, event: Paid) -> None: ...
async def any_number(ctx: Context, *events: Paid) -> None: ...
async def of_another_type(ctx: Context, event: int) -> None: ...
async def of_a_list(ctx: Context, event: list[Paid]) -> None: ...
async def coroutine_key(event: Paid) -> str:
    return ""


def plain(ctx: Context, event: Paid) -> None: ...


async def stream(ctx: Context, event: Paid) -> Any:
    yield 1


def twice() -> Operator:
    operator = subscribed()
    operator.on(paid, after_commit=True)(handle)
    return operator


def two_functions_of_a_name() -> Operator:
    async def handle(ctx: Context, event: int) -> None: ...

    operator = subscribed()
    operator.on(other)(handle)
    return operator


def too_many() -> App:
    operators = []
    for number in range(SUBSCRIPTIONS_MAX + 1):
        operators.append(Operator(f"o{number}"))
        operators[-1].on(paid)(handle)
    return built(*operators)


def too_late() -> None:
    operator = Operator("stock")
    built(operator)
    operator.on(paid)(handle)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: subscribed(event="paid"), "stock.handle is to be called for 'paid', which is not an Event"),
        (lambda: subscribed(event=Paid), "is not an Event"),
        (lambda: subscribed(event=None), "called for None"),
        (lambda: subscribed(no_event), "it takes the context and the event, as in `async def no_event(ctx, event: …)`"),
        (lambda: subscribed(two_events), "`async def two_events(ctx"),
        (lambda: subscribed(by_name), "`async def by_name(ctx"),
        (lambda: subscribed(only_by_name), "`async def only_by_name(ctx"),
        (lambda: subscribed(any_number), "`async def any_number(ctx"),
        (lambda: subscribed(plain), "is not an `async def` function"),
        (lambda: subscribed(stream), "has a `yield`"),
        (lambda: subscribed(5), "is not an `async def` function; write `async def f(ctx, …)`"),
        (lambda: subscribed(key="order"), "key= takes a plain function of the event, such as"),
        (lambda: subscribed(key=coroutine_key), "key= takes a plain function"),
        (lambda: subscribed(key=lambda: ""), "the function of key= must take one argument, the event"),
        (lambda: subscribed(key=lambda a, b: ""), "the function of key= must"),
        (lambda: subscribed(after_commit="yes"), "after_commit= is True or False, got 'yes'"),
        (lambda: subscribed(after_commit=None), "after_commit= is True or False, got None"),
        (lambda: subscribed(after_commit=True, retry=3), "retry= takes a styx.Retry, such as Retry(3): got 3"),
        (lambda: subscribed(retry=Retry(3)), "retry= is for calls after the commit: add after_commit=True"),
        (lambda: subscribed(ordered_by=lambda e: e.order), "ordered_by= is for calls after the commit"),
        (lambda: subscribed(after_commit=True, ordered_by="order"), "ordered_by= takes a plain function of the event"),
        (lambda: subscribed(after_commit=True, ordered_by=lambda: 1), "the function of ordered_by= must take one"),
        (twice, "stock.handle is called for event 'paid' already"),
        (two_functions_of_a_name, "has a function 'handle' already"),
        (too_late, "is in the app 'shop' already: subscribe before App(…) takes it"),
        (lambda: built(subscribed(), events=[other]), "which the app does not have: declare it in App(events=[…])"),
        (lambda: built(subscribed(), events=[]), "which has: none"),
        (lambda: built(subscribed(event=Event("paid", Paid)), events=[paid]), "which has: paid"),
        (lambda: built(subscribed(of_another_type)), "and takes int: annotate 'event' with the event's type"),
        (lambda: built(subscribed(of_a_list)), "annotate 'event' with the event's type"),
        (too_many, f"event 'paid' has {SUBSCRIPTIONS_MAX + 1} subscriptions; {SUBSCRIPTIONS_MAX} are the limit"),
        (lambda: subscribed(after_commit=True, retry=Retry(0)), "Retry(attempts=…) is a number from 1"),
        (lambda: Retry(1, timedelta(days=1)), "Retry(first=…) is a timedelta from 0"),
    ],
    ids=range(33),
)
def test_what_is_wrong_is_said(wrong: Callable[[], Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(told)):
        wrong()

"""What graphs declare of events, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from styx import App, ConfigurationError, Context, Event, Graph, Operator
from styx.messages import Request
from styx.testing.serial import SerialReference

placed: Event[int] = Event("placed", int)
counted: Event[int] = Event("counted", int)
foreign: Event[int] = Event("foreign", int)
order, stock, cart = Operator("order"), Operator("stock"), Operator("cart")


@order.register
async def place(ctx: Context, number: int = 1) -> None:
    ctx.emit(placed, number)


@stock.on(placed)
async def take(ctx: Context, event: int) -> None:
    await ctx.put(event)


@stock.on(placed, after_commit=True)
async def note(ctx: Context, event: int) -> None: ...


@cart.register
async def checkout(ctx: Context) -> None:
    ctx.call_async(order, place, ctx.key)


@cart.register
async def sneak(ctx: Context) -> None:
    ctx.emit(placed, 0)


@cart.on(counted)
async def recount(ctx: Context, event: int) -> None: ...


OPERATORS = [order, stock, cart]
EVENTS = [placed, counted]


def built(*graphs: Graph) -> App:
    return App("shop", OPERATORS, events=EVENTS, graphs=graphs)


def buying() -> Graph:
    graph = Graph("buying", start=checkout).edge(checkout, place).edge(place, take).terminal(take)
    return graph.publishes(place, placed)


def run(app: App, operator: str, function: str) -> Any:
    outcome = SerialReference(app).run(1, 0, Request("r", operator, "k", function, msgspec.msgpack.encode([])))
    return None if outcome.error is None else outcome.error[1:]


def test_the_publisher_emits() -> None:
    assert run(built(buying()), "cart", "checkout") is None
    assert run(built(buying()), "order", "place") is None


def test_another_function_does_not_even_outside_of_graphs() -> None:
    assert run(built(buying()), "cart", "sneak") == (
        "OutsideGraph",
        "cart.sneak on 'k' emitted event 'placed', which order.place alone publishes, as a graph declares: call that "
        "function, or emit another event",
    )


def test_one_function_publishes_in_several_graphs() -> None:
    other = Graph("placing", start=place).edge(place, take).terminal(take).publishes(place, placed)
    assert run(built(buying(), other), "order", "place") is None


def test_a_terminal_needs_no_edge_to_subscribers() -> None:
    assert run(built(Graph("g", start=place).terminal(place).publishes(place, placed)), "order", "place") is None


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda: buying().publishes(place), "publishes(…) names one event at least"),
        (lambda: buying().publishes(place, "placed"), "publishes 'placed', which is not an Event"),  # type: ignore[arg-type]
        (lambda: buying().publishes(place, placed), "'place' publishes 'placed' already"),
        (lambda: buying().publishes(7, placed), "a function is named as cart.checkout"),
        (lambda: built(buying().publishes(place, foreign)), "which the app does not have: declare it in App(events"),
        (lambda: built(buying().publishes(sneak, counted)), "publishes 'counted' and is not in the graph"),
        (
            lambda: built(Graph("g", start=place).edge(place, note).terminal(note).publishes(place, placed)),
            "order.place publishes 'placed', for which stock.take is called in the same transaction: the edge "
            "order.place -> stock.take is missing",
        ),
        (
            lambda: built(buying(), Graph("g", start=sneak).terminal(sneak).publishes(sneak, placed)),
            "event 'placed' is published by order.place and by cart.sneak: one may",
        ),
        (
            lambda: built(
                Graph("g", start=recount)
                .edge(recount, recount)
                .edge(recount, note)
                .terminal(note)
                .publishes(recount, counted)
            ),
            "events lead from cart.recount to cart.recount in one transaction, without end",
        ),
        (
            lambda: built(
                Graph("g", start=recount)
                .edge(recount, take)
                .edge(take, recount)
                .edge(recount, note)
                .terminal(note)
                .publishes(recount, placed)
                .publishes(take, counted)
            ),
            "events lead from cart.recount to stock.take to cart.recount in one transaction",
        ),
    ],
    ids=range(10),
)
def test_what_is_wrong_is_said(wrong: Callable[[], Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(told)):
        wrong()


def test_a_publisher_is_not_declared_late() -> None:
    graph = buying()
    built(graph)
    with pytest.raises(ConfigurationError, match="declare each publisher before"):
        graph.publishes(place, counted)

"""What an event costs beside a reply: orders that answer with what happened, emit it, emit it ten times, or write it
to their state; and what a value with lines costs, as an event and as an argument.

The functions are local, so that no conflict hides the cost. The log of events is not part of it.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

import msgspec

from styx import App, Context, Event, Operator

ORDERS: Final = 1_000
TIMES: Final = 10
"""Events of one transaction that emits often, and calls of one that calls often."""
LINES: Final = 3
"""Of an order."""


class Paid(msgspec.Struct):
    """What has happened."""

    order: int
    amount: int
    currency: str


class State(StrEnum):
    """Of a line."""

    RESERVED = "reserved"
    REFUSED = "refused"


class Line(msgspec.Struct, frozen=True):
    """Pieces of one product."""

    product: Annotated[int, msgspec.Meta(ge=1)]
    name: str
    price: Annotated[int, msgspec.Meta(ge=0)]
    quantity: int
    state: State


class Placed(msgspec.Struct, frozen=True):
    """What was ordered, and when."""

    order: int
    at: datetime
    lines: list[Line]


paid: Event[Paid] = Event("order-paid", Paid)
placed: Event[Placed] = Event("order-placed", Placed)
order = Operator("order", key_type=int)


def _what(ctx: Context, number: int) -> Paid:
    return Paid(ctx.key, number, "EUR")


def _placed(ctx: Context, number: int) -> Placed:
    lines = [Line(product, "a thing", number, 2, State.RESERVED) for product in range(1, LINES + 1)]
    return Placed(ctx.key, ctx.now(), lines)


@order.register(local=True)
async def answer(ctx: Context, number: int) -> Paid:
    """Answers alone."""
    return _what(ctx, number)


@order.register(local=True)
async def emit(ctx: Context, number: int) -> None:
    """Emits it instead."""
    ctx.emit(paid, _what(ctx, number))


@order.register(local=True)
async def emit_often(ctx: Context, number: int) -> None:
    """Emits it ten times."""
    for _ in range(TIMES):
        ctx.emit(paid, _what(ctx, number))


@order.register(local=True)
async def put(ctx: Context, number: int) -> None:
    """Writes it to its state instead."""
    await ctx.put({"order": ctx.key, "amount": number, "currency": "EUR"})


@order.register(local=True)
async def emit_lines(ctx: Context, number: int) -> None:
    """Emits ten times what was ordered."""
    for _ in range(TIMES):
        ctx.emit(placed, _placed(ctx, number))


@order.register(local=True)
async def call_with_lines(ctx: Context, number: int) -> None:
    """Calls ten times with what was ordered."""
    for _ in range(TIMES):
        ctx.call_async(order, take, ctx.key, (_placed(ctx, number),))


@order.register(local=True)
async def take(ctx: Context, what: Placed) -> None:
    """Is called."""


app = App("orders", [order], events=[paid, placed])


class Load(NamedTuple):
    """A row of the micro-benchmarks."""

    title: str
    function: str


LOADS: Final = {
    "answer": Load("an answer and no event", "answer"),
    "emit": Load("an event and no answer", "emit"),
    "emit_often": Load("ten events", "emit_often"),
    "emit_lines": Load("ten events, each with three lines", "emit_lines"),
    "call_with_lines": Load("ten calls, each with three lines", "call_with_lines"),
    "emit_as_state": Load("a write of the same", "put"),
}

"""What an event costs beside a reply: orders that answer with what happened, emit it, emit it ten times, or write it
to their state.

The functions are local, so that no conflict hides the cost. The log of events is not part of it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from styx import App, Context, Event, Operator

ORDERS: Final = 1_000
TIMES: Final = 10
"""Events of one transaction that emits often."""


class Paid(msgspec.Struct):
    """What has happened."""

    order: int
    amount: int
    currency: str


paid: Event[Paid] = Event("order-paid", Paid)
order = Operator("order", key_type=int)


def _what(ctx: Context, number: int) -> Paid:
    return Paid(ctx.key, number, "EUR")


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


app = App("orders", [order], events=[paid])


class Load(NamedTuple):
    """A row of the micro-benchmarks."""

    title: str
    function: str


LOADS: Final = {
    "answer": Load("an answer and no event", "answer"),
    "emit": Load("an event and no answer", "emit"),
    "emit_often": Load("ten events", "emit_often"),
    "emit_as_state": Load("a write of the same", "put"),
}

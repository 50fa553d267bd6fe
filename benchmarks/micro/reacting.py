"""What follows a request beside its reply: calls after the commit, and subscriptions to an event; and the same by
requests and calls.

The functions do as little as they can. What hears writes its own state, of as many entities as there are orders.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from styx import App, Context, Event, Operator

ORDERS: Final = 1_000


class Paid(msgspec.Struct):
    """What has happened."""

    order: int
    amount: int


unheard: Event[Paid] = Event("unheard", Paid)
heard_at_once: Event[Paid] = Event("heard-at-once", Paid)
heard_later: Event[Paid] = Event("heard-later", Paid)
heard_in_order: Event[Paid] = Event("heard-in-order", Paid)
order = Operator("order", key_type=int)
ledger = Operator("ledger", key_type=int)


@order.register
async def ask(ctx: Context, number: int) -> None:
    """A request that does nothing."""


@order.register
async def give(ctx: Context, number: int) -> None:
    """Gives a call for after the commit."""
    ctx.after_commit(ledger, write, ctx.key, (number,))


@order.register
async def call(ctx: Context, number: int) -> None:
    """Makes the call in the transaction, and emits."""
    event = Paid(ctx.key, number)
    ctx.emit(unheard, event)
    ctx.call_async(ledger, hear, event.order, (event,))


@order.register
async def emit(ctx: Context, number: int) -> None:
    """Emits what a subscriber hears in the transaction."""
    ctx.emit(heard_at_once, Paid(ctx.key, number))


@order.register
async def call_later(ctx: Context, number: int) -> None:
    """Gives the call for after the commit, and emits."""
    event = Paid(ctx.key, number)
    ctx.emit(unheard, event)
    ctx.after_commit(ledger, hear, event.order, (event,))


@order.register
async def emit_for_later(ctx: Context, number: int) -> None:
    """Emits what a subscriber hears after the commit, in the order of this entity."""
    ctx.emit(heard_later, Paid(ctx.key, number))


@order.register
async def emit_for_a_group(ctx: Context, number: int) -> None:
    """Emits what a subscriber hears after the commit, in one order for all entities."""
    ctx.emit(heard_in_order, Paid(ctx.key, number))


@ledger.register
async def write(ctx: Context, number: int) -> None:
    """Keeps a number."""
    await ctx.put(number)


@ledger.on(heard_at_once, key=lambda event: event.order)
@ledger.on(heard_later, key=lambda event: event.order, after_commit=True)
@ledger.on(heard_in_order, key=lambda event: event.order, after_commit=True, ordered_by=lambda event: "all")
async def hear(ctx: Context, event: Paid) -> None:
    """Counts the events, and keeps the last number."""
    count, _ = await ctx.get((0, 0))
    await ctx.put((count + 1, event.amount))


@ledger.register(read_only=True)
async def written(ctx: Context) -> int:
    """How many events it has heard."""
    count, _ = await ctx.get((0, 0))
    return int(count)


app = App("reacting", [order, ledger], events=[unheard, heard_at_once, heard_later, heard_in_order])


class Load(NamedTuple):
    """A row of the micro-benchmarks: a `function` of `order`, on so many entities as `orders` in turns. `two`: each
    second request is one for `write`.
    """

    title: str
    function: str
    two: bool = False
    orders: int = ORDERS


LOADS: Final = {
    "two_requests": Load("a request, and one that writes", "ask", two=True),
    "give_later": Load("a request, and a call after the commit that writes", "give"),
    "call_at_once": Load("an event, and a call in the transaction", "call"),
    "heard_at_once": Load("an event with a subscriber in the transaction", "emit"),
    "call_later": Load("an event, and a call after the commit", "call_later"),
    "heard_later": Load("an event with a subscriber after the commit, each of another source", "emit_for_later"),
    "heard_of_one": Load("an event with a subscriber after the commit, all of one source", "emit_for_later", orders=1),
    "heard_in_order": Load("an event with a subscriber after the commit, all in one order", "emit_for_a_group"),
}

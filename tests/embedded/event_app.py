"""An app whose functions emit events, for tests of those who read them."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import msgspec

from styx import App, Context, Event, Operator


class Paid(msgspec.Struct):
    amount: int
    by: str = ""


class Noted(msgspec.Struct):
    text: str


def shop() -> App:
    """Orders that are paid, and a log of notes."""
    order = Operator("order")
    paid, noted = Event("order-paid", Paid), Event("noted", Noted)

    @order.register
    async def pay(ctx: Context, amount: int) -> int:
        ctx.emit(paid, Paid(amount, str(ctx.key)))
        await ctx.put(await ctx.get(0) + amount)
        return await ctx.get()  # type: ignore[no-any-return]

    @order.register
    async def pay_and_fail(ctx: Context, amount: int) -> None:
        ctx.emit(paid, Paid(amount))
        raise ValueError("no money")

    @order.register
    async def pay_two(ctx: Context, other: str, amount: int) -> None:
        ctx.emit(paid, Paid(amount, str(ctx.key)))
        ctx.call_async(order, pay, key=other, params=(amount,))

    @order.register
    async def note(ctx: Context, text: str) -> None:
        ctx.emit(noted, Noted(text))

    @order.register
    async def pay_later(ctx: Context, amount: int, seconds: int) -> None:
        ctx.after(timedelta(seconds=seconds), order, pay, ctx.key, (amount,))

    return App("shop", [order], events=[paid, noted])


def draws() -> App:
    """An app that emits another value in each run, or nothing."""
    ticket = Operator("ticket")
    drawn = Event("drawn", Noted)
    numbers = itertools.count(1)

    @ticket.register
    async def draw(ctx: Context) -> None:
        ctx.emit(drawn, Noted(str(next(numbers))))

    @ticket.register
    async def sometimes(ctx: Context) -> None:
        if next(numbers) % 2:
            ctx.emit(drawn, Noted("odd"))

    return App("tickets", [ticket], events=[drawn])


def amounts(events: list[Any]) -> list[int]:
    return [event.value.amount for event in events]

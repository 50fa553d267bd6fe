"""An app that gives calls for later, and writes down each of them as it is made."""

from __future__ import annotations

from datetime import timedelta

from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator

giver = Operator("giver", key_type=int)
book = Operator("book", key_type=int)


@giver.register
async def give(ctx: Context, first: int, count: int, to: int, delay_ms: int) -> None:
    """Gives calls with the numbers from `first` on: after the commit, or after a delay above 0."""
    await ctx.put(first + count)
    for number in range(first, first + count):
        if delay_ms:
            delay = timedelta(milliseconds=delay_ms)
            due_us = round((ctx.now() + delay).timestamp() * 1e6)
            ctx.after(delay, book, write, to, (ctx.key, number, due_us))
        else:
            ctx.after_commit(book, write, to, (ctx.key, number, 0))


@book.register
async def write(ctx: Context, who: int, number: int, due_us: int) -> None:
    """Writes a call down: who gave it, its number, and how many microseconds late it is."""
    late_us = round(ctx.now().timestamp() * 1e6) - due_us if due_us else 0
    await ctx.put([*await ctx.get([]), [who, number, late_us]])


@book.register(read_only=True)
async def lines(ctx: Context) -> list[list[int]]:
    """All that was written down."""
    return await ctx.get([])  # type: ignore[no-any-return]


app = App("later", [giver, book])

"""The app: a counter with four functions, and the entities that its numbers go to.

No number can be known before its transaction's turn. So a call that was made with a number in the first run of an epoch
is nearly always another one when the transaction is run again. What each entity keeps depends on the order in which the
numbers came, so that a number that came too early, twice or not at all shows in its state.
"""

from __future__ import annotations

from typing import Final

from styx import App, Context, Operator

MODULUS: Final = 1_000_003
"""Digests stay below this."""

counter = Operator("counter")
ledger = Operator("ledger")
invoice = Operator("invoice", key_type=int)
price = Operator("price")
stage = Operator("stage")


def digest(before: int, number: int) -> int:
    """What an entity keeps of the numbers that came to it, one after the other."""
    return (before * 31 + number) % MODULUS


async def _next(ctx: Context) -> int:
    number: int = await ctx.get(0) + 1
    await ctx.put(number)
    return number


@counter.register
async def as_argument(ctx: Context, to: str) -> int:
    """The number is an argument of a call to the ledger `to`."""
    number = await _next(ctx)
    ctx.call_async(ledger, note, to, (number,))
    return number


@counter.register
async def as_key(ctx: Context) -> int:
    """The number is the key of the invoice that is called."""
    number = await _next(ctx)
    ctx.call_async(invoice, issue, number)
    return number


@counter.register
async def for_a_result(ctx: Context, of: str) -> list[int]:
    """The price `of` gives a result for the number, which the counter adds up."""
    number, total = await ctx.get([0, 0])
    number += 1
    quoted = await ctx.call(price, quote, of, (number,))
    await ctx.put([number, total + quoted])
    return [number, quoted]


@counter.register
async def along_a_chain(ctx: Context, first: str, second: str) -> int:
    """The number goes to the stage `first`, which makes another one of it for the stage `second`."""
    number = await _next(ctx)
    ctx.call_async(stage, pass_on, first, (number, [second]))
    return number


@ledger.register
async def note(ctx: Context, number: int) -> None:
    await ctx.put(digest(await ctx.get(0), number))


@invoice.register
async def issue(ctx: Context) -> None:
    await ctx.put(await ctx.get(0) + 1)


@price.register
async def quote(ctx: Context, number: int) -> int:
    quoted = digest(await ctx.get(0), number)
    await ctx.put(quoted)
    return quoted


@stage.register
async def pass_on(ctx: Context, number: int, further: list[str]) -> None:
    made = digest(await ctx.get(0), number)
    await ctx.put(made)
    if further:
        ctx.call_async(stage, pass_on, further[0], (made, further[1:]))


app = App("travelling_numbers", operators=[counter, ledger, invoice, price, stage])

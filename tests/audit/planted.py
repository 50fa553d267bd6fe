"""An app with functions that are deterministic, and some that are not: each of these in its own way."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import Any

from styx import App, Context, Event, Operator

WORDS = tuple(f"word {number}" for number in range(40))
outside_calls: list[int] = []

thing = Operator("thing", n_partitions=4)
told = Event("told", int)


@thing.register
async def add(ctx: Context, amount: int = 1) -> int:
    """Deterministic."""
    total: int = await ctx.get(0) + amount
    await ctx.put(total)
    ctx.emit(told, total)
    return total


@thing.register
async def put(ctx: Context, value: Any) -> None:
    """Deterministic."""
    await ctx.put(value)


@thing.register
async def copy(ctx: Context, to: str) -> None:
    """Deterministic: whatever differs here goes on to another entity."""
    ctx.call_async(thing, put, to, (await ctx.get(),))


@thing.register
async def charge(ctx: Context) -> int:
    """Deterministic, as its outcome is recorded."""
    number: int = await ctx.call_external(outside, 5)
    await ctx.put(number)
    return number


async def outside(number: int) -> int:
    """Gives another number each time."""
    outside_calls.append(number)
    return number + len(outside_calls)


@thing.register
async def draw(ctx: Context) -> None:
    """Only the state differs."""
    await ctx.get()
    await ctx.put(random.random())


@thing.register(local=True)
async def draw_locally(ctx: Context) -> None:
    """As `draw`."""
    await ctx.put(random.random())


@thing.register
async def draw_there(ctx: Context, to: str) -> None:
    """What it calls is not deterministic."""
    await ctx.call(thing, draw, to)


@thing.register
async def order(ctx: Context) -> None:
    """The order of a set of texts, which is another one in each process."""
    await ctx.put(list(set(WORDS)))


@thing.register
async def clock(ctx: Context) -> float:
    """The reply differs as well."""
    now = time.time()
    await ctx.put(now)
    return now


@thing.register
async def tell(ctx: Context) -> None:
    """Only an event differs."""
    ctx.emit(told, random.randrange(2**40))


@thing.register
async def later(ctx: Context, times: int) -> None:
    """Gives calls for later at times that are other ones in each run."""
    for number in range(times):
        ctx.after(timedelta(microseconds=random.randrange(10)), thing, add, f"later {number}", (random.randrange(9),))


@thing.register
async def vague(ctx: Context) -> None:
    """Fails in other words each time."""
    raise ValueError(f"about {random.random()}")


app = App("planted", [thing], events=[told])

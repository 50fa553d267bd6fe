"""An app whose functions are not deterministic: they give different results in each process or run. For tests of
replays.

The replies of the functions in `CAUGHT` show the difference. That of `hidden` and `other_entity` shows only in replies
of functions that read their state.
"""

from __future__ import annotations

import itertools
import os
import random
import time
import uuid
from typing import Any, Final, TypeVar

from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator

T = TypeVar("T")

VARIABLE: Final = "STYX_UNSTEADY"
"""The variable of the environment that `environment` returns."""
CAUGHT: Final = ("drawn", "counted", "set_order", "clock", "identifier", "address", "environment", "process", "cached")

ticket = Operator("ticket")

_numbers = itertools.count(1)
_cache: dict[str, int] = {}
_WORDS: Final = tuple(f"word {number}" for number in range(50))


async def _kept(ctx: Context, value: T) -> T:
    await ctx.put(value)
    return value


@ticket.register
async def drawn(ctx: Context) -> float:
    """A random number that does not come from the context."""
    return await _kept(ctx, random.random())


@ticket.register
async def counted(ctx: Context) -> int:
    """A global variable."""
    return await _kept(ctx, next(_numbers))


@ticket.register
async def set_order(ctx: Context) -> list[str]:
    """The order of a set of str, by the process's hash seed."""
    return await _kept(ctx, list(set(_WORDS)))


@ticket.register
async def clock(ctx: Context) -> float:
    """The time."""
    return await _kept(ctx, time.time())


@ticket.register
async def identifier(ctx: Context) -> str:
    """A random identifier."""
    return await _kept(ctx, str(uuid.uuid4()))


@ticket.register
async def address(ctx: Context) -> int:
    """The address of an object in memory."""
    return await _kept(ctx, id(ctx))


@ticket.register
async def environment(ctx: Context) -> str | None:
    """A variable of the environment."""
    return await _kept(ctx, os.environ.get(VARIABLE))


@ticket.register
async def process(ctx: Context) -> int:
    """The process's id."""
    return await _kept(ctx, os.getpid())


@ticket.register
async def cached(ctx: Context) -> bool:
    """Whether a cache of the module had the key."""
    key = str(ctx.key)
    had = key in _cache
    _cache[key] = 1
    return await _kept(ctx, had)


@ticket.register
async def failing(ctx: Context) -> None:
    """Raises the same error with different words."""
    raise ValueError(f"number {next(_numbers)}")


@ticket.register
async def hidden(ctx: Context) -> str:
    """Only the state differs."""
    await ctx.put(random.random())
    return "done"


@ticket.register
async def other_entity(ctx: Context) -> None:
    """Writes to a random entity, like other transactions beside it. So the conflicts differ each time."""
    for _ in range(3):
        await ctx.call(ticket, add, f"shared {random.randrange(8)}", (1,))


@ticket.register
async def sometimes_outside(ctx: Context) -> int:
    """Makes an external call only in its first process, by a global variable."""
    if os.environ.get(VARIABLE) == "first":
        number: int = await ctx.call_external(outside, 5)
        return number
    return 0


@ticket.register
async def sometimes_fails(ctx: Context) -> int:
    """Fails if the environment has changed."""
    if os.environ.get(VARIABLE) != "first":
        raise ValueError("not the first")
    await ctx.put(1)
    return 1


@ticket.register
async def add(ctx: Context, amount: int = 1) -> int:
    """Adds to the entity's number. This function is deterministic."""
    total: int = await ctx.get(0) + amount
    return await _kept(ctx, total)


@ticket.register
async def together(ctx: Context) -> None:
    """Branches that meet on random entities, some of which fail. So the lock phase's transactions differ each time."""
    for _ in range(3):
        ctx.call_async(ticket, add, f"shared {random.randrange(4)}", (1,))
    if random.random() < 0.2:
        raise ValueError("not today")


@ticket.register
async def read(ctx: Context) -> Any:
    """The stored value."""
    return await ctx.get()


async def outside(number: int) -> int:
    """An external function."""
    return number + 1


app = App("unsteady", [ticket])

"""An app for reads outside the log of a cluster: counters that are raised in pairs, which lie on any two slots, so that
a read of both that sees one without the other is a torn one.
"""

from __future__ import annotations

from typing import Any, Final

from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator

counter = Operator("counter")

COUNTERS: Final = 8
"""`a0` to `a7`, and to each of them its twin `b0` to `b7`."""


@counter.register
async def add(ctx: Context) -> int:
    """Raises the counter; gives its new value."""
    value: int = await ctx.get(0) + 1
    await ctx.put(value)
    return value


@counter.register
async def add_both(ctx: Context, twin: str) -> int:
    """Raises the counter and its twin; gives the new value of both."""
    value: int = await add(ctx)
    ctx.call_async(counter, add, twin)
    return value


@counter.register(read_only=True)
async def value(ctx: Context) -> int:
    """The counter."""
    found: int = await ctx.get(0)
    return found


@counter.register(read_only=True)
async def values(ctx: Context, others: list[str]) -> list[Any]:
    """The counter, and others on any slots, at one moment."""
    return [await ctx.get(0), *[await ctx.call(counter, value, other) for other in others]]


app = App("counters", [counter])

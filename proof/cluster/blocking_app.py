"""An app whose functions do not end, or end late, for clusters under test. Each entity has a count."""

from __future__ import annotations

import fcntl
import time

from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator

counter = Operator("counter")


@counter.register
async def add(ctx: Context) -> int:
    """Adds one to this entity and to its shadow, which may be on any worker."""
    total: int = await ctx.get(0) + 1
    await ctx.put(total)
    ctx.call_async(counter, shadow, f"shadow of {ctx.key}")
    return total


@counter.register
async def shadow(ctx: Context) -> None:
    """Adds one to a shadow."""
    await ctx.put(await ctx.get(0) + 1)


@counter.register
async def block(ctx: Context, seconds: float) -> int:
    """Holds up its worker in C, then adds one."""
    time.sleep(seconds)  # noqa: ASYNC251 - that is what is wrong with it
    total: int = await ctx.get(0) + 1
    await ctx.put(total)
    return total


@counter.register
async def wait_for_lock(ctx: Context, path: str) -> int:
    """Holds up its worker in C while another process has the file's lock, then adds one."""
    with open(path) as file:  # noqa: ASYNC230 - that is what is wrong with it
        fcntl.flock(file, fcntl.LOCK_EX)
    total: int = await ctx.get(0) + 1
    await ctx.put(total)
    return total


@counter.register
async def spin(ctx: Context) -> None:
    """Never ends. Its shadow counts, too."""
    await ctx.put(99)
    ctx.call_async(counter, shadow, f"shadow of {ctx.key}")
    while True:
        pass


@counter.register
async def spin_elsewhere(ctx: Context) -> None:
    """Waits for a function that never ends."""
    await ctx.put(99)
    await ctx.call(counter, spin, f"elsewhere than {ctx.key}")


app = App("blocking", [counter])

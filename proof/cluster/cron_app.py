"""An app with crons: one that keeps the times of its ticks, and one that fails and leaves dead calls."""

from __future__ import annotations

from datetime import timedelta

from styx.model.agenda import Retry
from styx.model.app import App
from styx.model.context import Context
from styx.model.operator import Operator

clock = Operator("clock", key_type=int)
PLACES = 6


async def tick(ctx: Context) -> None:
    """Keeps its time, in seconds."""
    await ctx.put([*await ctx.get([]), ctx.now().timestamp()])


for place in range(PLACES):
    clock.cron("* * * * * *", key=place)(tick)


@clock.cron("*/2 * * * * *", key=100, retry=Retry(2, timedelta(milliseconds=50)))
async def fails(ctx: Context) -> None:
    """Fails until somebody has helped."""
    if not await ctx.get(False):
        raise ValueError("nobody helps")


@clock.register
async def help_it(ctx: Context) -> None:
    """From here on `fails` does not."""
    await ctx.put(True)


app = App("crons", [clock])

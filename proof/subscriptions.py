"""An app of the chaos app's operators, whose functions emit events to which others subscribe in every way.

In place of a call for later, a program of `proof.chaos_app` emits `said`. The operator `log` hears it: in the same
transaction, after the commit in the order of its source, and after the commit in the order of a group of sources. Some
are hard to hear, so that a delivery fails a time or two, or for good. What is heard in the transaction is passed on as
another event.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from proof import chaos_app
from proof.later_steps import PAUSE
from styx.model.agenda import Retry
from styx.model.app import App
from styx.model.context import Context
from styx.model.event import Event
from styx.model.operator import Operator

HARD_TO_HEAR: Final = 7
"""Of so many events one is heard by nobody."""
TARGETS: Final = 5
"""Entities that hear."""


class Said(msgspec.Struct):
    """`text` is given once. `group` and `target` are numbers."""

    text: str
    source: str
    group: int
    target: int


class Hard(Exception):
    """Nobody understood it."""


said: Event[Said] = Event("said", Said)
echo: Event[Said] = Event("echo", Said)


def say(ctx: Context, ms: int, n: int, operator: str, key: Any, steps: list[Any]) -> None:
    """Emits, in place of `proof.later_steps.give`."""
    text = ctx.unique_id()
    ctx.emit(said, Said(text, f"{ctx.operator} {ctx.key}", n, sum(map(ord, text + str(ms))) % TARGETS))


def _is_hard(event: Said) -> bool:
    return sum(map(ord, event.text)) % HARD_TO_HEAR == 0


async def _append(ctx: Context, how: str, event: Said) -> None:
    state = await ctx.get({})
    state.setdefault(how, []).append(event.text)
    await ctx.put(state)


def app_of_listeners() -> App:
    """The app; its operators are the chaos app's, and `log`."""
    log = Operator("log", key_type=int)

    @log.on(said, key=lambda event: event.target)
    async def hear(ctx: Context, event: Said) -> None:
        await _append(ctx, "at once", event)
        ctx.emit(echo, event)

    @log.on(said, key=lambda event: event.target, after_commit=True, retry=Retry(2, PAUSE))
    async def hear_source(ctx: Context, event: Said) -> None:
        if _is_hard(event):
            raise Hard(event.text)
        await _append(ctx, event.source, event)

    @log.on(
        said,
        key=lambda event: event.target,
        after_commit=True,
        retry=Retry(3, PAUSE),
        ordered_by=lambda event: event.group,
    )
    async def hear_group(ctx: Context, event: Said) -> None:
        if _is_hard(event) and event.group:
            raise Hard(event.text)
        await _append(ctx, f"group {event.group}", event)

    @log.on(echo, after_commit=True)
    async def hear_echo(ctx: Context, event: Said) -> None:
        await _append(ctx, "echo", event)

    return App("chaos", [*chaos_app.app.operators.values(), log], events=[said, echo])

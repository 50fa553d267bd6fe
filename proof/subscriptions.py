"""An app of the chaos app's operators, whose functions emit events to which others subscribe in every way.

In place of a call for later, a program of `proof.chaos_app` emits `said`. The operator `log` hears it: in the same
transaction, after the commit in the order of its source, and after the commit in the order of a group of sources. Some
are hard to hear, so that a delivery fails for good. What is heard in the transaction is passed on as another event, and
some of who hears that call an external function. Who hears a group counts beside it, in an asynchronous call, and keeps
what the count was: so it can be told whether each call has found all that those before it have done.

`check_heard` holds the final state against what was emitted, and knows nothing of lanes and deliveries.
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
from styx.testing.history import HistoryReport
from styx.values.codec import decode_plain

HARD_TO_HEAR: Final = 7
"""Of so many events one is heard by nobody."""
TARGETS: Final = 5
"""Entities that hear."""
COUNTERS: Final = -1_000
"""The entity that counts for group 0; the others are below."""
FAR_AWAY: Final = 5
"""Of so many echoes one is told outside."""
told_outside: Final[list[str]] = []
"""The texts with which the external function was called."""


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


def outside(text: str) -> None:
    """The external function."""
    told_outside.append(text)


def _is_faint(event: Said) -> bool:
    return sum(map(ord, event.text)) % HARD_TO_HEAR == 1


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
        number = await ctx.call(log, counted, COUNTERS - event.group)
        ctx.call_async(log, count, COUNTERS - event.group)
        await _append(ctx, f"group {event.group}", event)
        state = await ctx.get({})
        state.setdefault(f"counts {event.group}", []).append(number)
        await ctx.put(state)

    @log.register(read_only=True)
    async def counted(ctx: Context) -> int:
        return len(await ctx.get([]))

    @log.register
    async def count(ctx: Context) -> None:
        await ctx.put([*await ctx.get([]), None])

    @log.on(echo, after_commit=True, retry=Retry(2, PAUSE))
    async def hear_echo(ctx: Context, event: Said) -> None:
        if _is_faint(event):
            raise Hard(event.text)
        if sum(map(ord, event.text)) % FAR_AWAY == 0:
            await ctx.call_external(outside, event.text)
        await _append(ctx, "echo", event)

    return App("chaos", [*chaos_app.app.operators.values(), log], events=[said, echo])


class NotAsSaid(AssertionError):
    """What was heard is not what was said, or not in its order."""


def check_heard(history: HistoryReport) -> None:
    """Raises `NotAsSaid`: each event is heard once by each subscriber, but by those for whom it is too hard; and those
    of one source, and of one group, in the order in which they were emitted.
    """
    events = [(each, said.decode(each.payload)) for each in history.emitted if each.event == said.name]
    place = {event.text: number for number, (_, event) in enumerate(events)}
    tid = {event.text: each.tid for each, event in events}
    order = {number: at for at, number in enumerate(dict.fromkeys(tid.values()))}
    hard = {event.text for _, event in events if _is_hard(event)}
    heard: dict[str, list[str]] = {"at once": [], "source": [], "group": [], "echo": []}
    counts: dict[str, list[int]] = {}
    for (operator, key), data in history.state.items():
        state = decode_plain(data) if operator == "log" and isinstance(key, int) and 0 <= key < TARGETS else {}
        for how, found in state.items():
            kind = how.split(" ")[0]
            if kind == "counts":
                counts.setdefault(how, []).extend(found)
                _in_order(how, found, found)
            elif how in heard:
                heard[how] += found
            elif kind == "group":
                heard[kind] += found
                _in_order(f"{how} by {key}", found, [order[tid[text]] for text in found])
            else:
                heard["source"] += found
                _in_order(f"{how} by {key}", found, [place[text] for text in found])
    faint = {event.text for _, event in events if _is_faint(event)}
    hard_of_group = {event.text for _, event in events if event.group and event.text in hard}
    for kind, lost in {"at once": set(), "echo": faint, "source": hard, "group": hard_of_group}.items():
        missing = place.keys() - lost - set(heard[kind])
        if missing or lost.intersection(heard[kind]) or len(set(heard[kind])) < len(heard[kind]):
            raise NotAsSaid(f"{kind}: {len(missing)} were not heard, {len(heard[kind])} were, of {len(place)}")
    for how, found in counts.items():
        if sorted(found) != list(range(len(found))):
            raise NotAsSaid(f"{how}: calls did not find what those before them had done: {sorted(found)}")


def _in_order(what: str, found: list[Any], places: list[int]) -> None:
    if places != sorted(places):
        raise NotAsSaid(f"{what}: heard out of order: {found}")

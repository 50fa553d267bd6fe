"""An app of everything that happens by events and by time, which tells of all of it in events.

What a function gives for later says so in an event of its own, and so does what is called. So a reader of the topics
sees what was given, what was made of it, and when, without asking the app. `proof.cluster.call_judge` says what has to
hold.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec

from styx.model.agenda import Retry
from styx.model.app import App
from styx.model.context import Context
from styx.model.event import Event
from styx.model.operator import Operator

LIFE: Final = timedelta(seconds=2)
"""Of a session's value, and of a row."""
SHY_US: Final = 300_000
"""For so long behind its giving a shy call fails."""
BOOKS: Final = 65_536
"""Entities that the calls of bursts are spread over."""
CLOCKS: Final = 3
"""Entities that a cron calls each second."""
GROUPS: Final = 4
"""Groups whose transfers are noted in one order."""
BURST_EACH: Final = 100
"""Calls that one request of a burst gives."""
_RETRIES: Final = {
    "shy": Retry(20, timedelta(milliseconds=200)),
    "failing": Retry(2, timedelta(milliseconds=50)),
}


class Moved(msgspec.Struct):
    """`number` counts the events of the account, of both kinds, from 1; `name` is the request's."""

    account: int
    number: int
    name: str
    amount: int


class Hopped(msgspec.Struct):
    """A call of a deep graph of calls has begun, or (`ended`) it has ended."""

    account: int
    number: int
    name: str
    ended: bool


class Given(msgspec.Struct):
    """Calls `first` to before `first` + `count` of a giver; due as soon as possible if `due_us` is 0."""

    giver: int
    kind: str
    first: int
    count: int
    due_us: int
    name: str


class Withdrawn(msgspec.Struct):
    """A named call was to be withdrawn; `stood`: it had not been made."""

    giver: int
    name: str
    stood: bool


class Made(msgspec.Struct):
    """A call was made, when `ctx.now()` was `now_us`."""

    giver: int
    number: int
    kind: str
    due_us: int
    now_us: int


class Ticked(msgspec.Struct):
    """A cron has called a clock for the `number`-th time, for the time `tick_us`."""

    clock: int
    number: int
    tick_us: int


class Lived(msgspec.Struct):
    """What lives for a time was written at `now_us`; `before_us` is when it was written before, 0: it was not there."""

    what: str
    key: int
    before_us: int
    now_us: int


class Noted(msgspec.Struct):
    """A transfer was heard of: in the order of its account (`how` is source), or of a group of them."""

    how: str
    group: int
    account: int
    number: int


moved: Event[Moved] = Event("moved", Moved)
hopped: Event[Hopped] = Event("hopped", Hopped, version=3)
settled: Event[str] = Event("settled", str, version=2)
tallied: Event[str] = Event("tallied", str)
given: Event[Given] = Event("given", Given)
withdrawn: Event[Withdrawn] = Event("withdrawn", Withdrawn)
made: Event[Made] = Event("made", Made)
ticked: Event[Ticked] = Event("ticked", Ticked)
lived: Event[Lived] = Event("lived", Lived)
noted: Event[Noted] = Event("noted", Noted)

account = Operator("account", key_type=int)
giver = Operator("giver", key_type=int)
book = Operator("book", key_type=int)
clock = Operator("clock", key_type=int)
session = Operator("session", key_type=int, ttl=LIFE)
shop = Operator("shop", key_type=int)
notes = Operator("notes", key_type=int)
tally = Operator("tally", key_type=int)


class Offer(msgspec.Struct):
    """A row that lives for a time."""

    product: int
    at_us: int


offers = shop.table("offers", Offer, key="product", ttl=LIFE)


def _now_us(ctx: Context) -> int:
    return round(ctx.now().timestamp() * 1e6)


# Events ----------------------------------------------------------------------------------------------------


async def _number(ctx: Context, amount: int = 0) -> int:
    """The number of the account's next event; the account also keeps its balance."""
    told, balance = await ctx.get((0, 0))
    await ctx.put((told + 1, balance + amount))
    number: int = told + 1
    return number


@account.register
async def transfer(ctx: Context, to: int, amount: int, name: str, refused: bool) -> None:
    """Both accounts tell of it, and the bank does, under another key. One that is refused aborts behind all that."""
    ctx.emit(moved, Moved(ctx.key, await _number(ctx, -amount), name, -amount))
    ctx.call_async(account, take, to, (amount, name))
    ctx.emit(settled, name, key=("bank", to % 3))
    if refused:
        raise ValueError("refused")


@account.register
async def take(ctx: Context, amount: int, name: str) -> None:
    """The other side."""
    ctx.emit(moved, Moved(ctx.key, await _number(ctx, amount), name, amount))


@account.register
async def hop(ctx: Context, name: str, children: list[tuple[int, bool, list[Any]]]) -> int:
    """Tells that it begins and that it ends, and calls each child between: (account, whether to wait, its children)."""
    ctx.emit(hopped, Hopped(ctx.key, await _number(ctx), name, False))
    below = 0
    for key, waits, rest in children:
        if waits:
            below += await ctx.call(account, hop, key, (name, rest))
        else:
            ctx.call_async(account, hop, key, (name, rest))
    ctx.emit(hopped, Hopped(ctx.key, await _number(ctx), name, True))
    return below + 1


@account.register(read_only=True)
async def look(ctx: Context, others: list[int]) -> list[list[int]]:
    """(account, events, balance) of this account and of others."""
    found = [[ctx.key, *await ctx.get((0, 0))]]
    for other in others:
        found += await ctx.call(account, look, other, ([],))
    return found


@tally.on(settled, key=lambda name: len(name) % 5)
async def count(ctx: Context, name: str) -> None:
    """Hears of a settlement in its transaction."""
    await ctx.put(await ctx.get(0) + 1)
    ctx.emit(tallied, name)


@notes.on(moved, key=lambda event: event.account, after_commit=True)
async def note_source(ctx: Context, event: Moved) -> None:
    """Hears of a transfer in the order of its account."""
    ctx.emit(noted, Noted("source", event.account, event.account, event.number))


@notes.on(moved, key=lambda event: event.account, after_commit=True, ordered_by=lambda event: event.account % GROUPS)
async def note_group(ctx: Context, event: Moved) -> None:
    """Hears of it in the order of its group."""
    ctx.emit(noted, Noted("group", event.account % GROUPS, event.account, event.number))


# Time ------------------------------------------------------------------------------------------------------


async def _next_number(ctx: Context, calls: int) -> int:
    first: int = await ctx.get(0)
    await ctx.put(first + calls)
    return first


@giver.register
async def give(ctx: Context, kind: str, calls: int) -> None:
    """Gives calls after the commit: to one book, which has them in their order; shy ones and failing ones."""
    first = await _next_number(ctx, calls)
    due_us = _now_us(ctx) + SHY_US if kind == "shy" else 0
    for number in range(first, first + calls):
        arguments = (ctx.key, number, kind, due_us)
        retry = {"retry": _RETRIES[kind]} if kind in _RETRIES else {}
        ctx.after_commit(book, write, ctx.key, arguments, **retry)
    ctx.emit(given, Given(ctx.key, kind, first, calls, 0, ""))


@giver.register
async def give_timers(ctx: Context, calls: int, delay_us: int) -> None:
    """Gives calls that are due later."""
    first = await _next_number(ctx, calls)
    due_us = _now_us(ctx) + delay_us
    for number in range(first, first + calls):
        ctx.after(timedelta(microseconds=delay_us), book, write, ctx.key, (ctx.key, number, "timer", due_us))
    ctx.emit(given, Given(ctx.key, "timer", first, calls, due_us, ""))


@giver.register
async def give_burst(ctx: Context, calls: int, at_us: int) -> None:
    """Gives calls that are due at one moment, together with those of other givers; spread over many books."""
    first = await _next_number(ctx, calls)
    delay_us = at_us - _now_us(ctx)
    for number in range(first, first + calls):
        place = 1_000_000 + (ctx.key * 1_009 + number) % BOOKS
        ctx.after(timedelta(microseconds=delay_us), book, write, place, (ctx.key, number, "burst", at_us))
    ctx.emit(given, Given(ctx.key, "burst", first, calls, at_us, ""))


@giver.register
async def give_named(ctx: Context, name: str, delay_us: int) -> None:
    """Gives a call under a name, in the place of the one that stands there."""
    first = await _next_number(ctx, 1)
    due_us = _now_us(ctx) + delay_us
    arguments = (ctx.key, first, "named", due_us)
    ctx.after(timedelta(microseconds=delay_us), book, write, ctx.key, arguments, name=name)
    ctx.emit(given, Given(ctx.key, "named", first, 1, due_us, name))


@giver.register
async def withdraw(ctx: Context, name: str) -> bool:
    """Withdraws it; whether it stood there."""
    stood = await ctx.cancel(name)
    ctx.emit(withdrawn, Withdrawn(ctx.key, name, stood))
    return stood


@book.register
async def write(ctx: Context, who: int, number: int, kind: str, due_us: int) -> None:
    """Counts the call, and tells of it."""
    now_us = _now_us(ctx)
    await ctx.put(await ctx.get(0) + 1)
    ctx.emit(made, Made(who, number, kind, due_us, now_us))
    if kind == "failing" or (kind == "shy" and now_us < due_us):
        raise ValueError("not now")


async def tick(ctx: Context) -> None:
    """Numbers its ticks."""
    number: int = await ctx.get(0) + 1
    await ctx.put(number)
    ctx.emit(ticked, Ticked(ctx.key, number, _now_us(ctx)))


for place in range(CLOCKS):
    clock.cron("* * * * * *", key=place)(tick)


@session.register
async def visit(ctx: Context) -> None:
    """Writes a value that lives for a time."""
    ctx.emit(lived, Lived("value", ctx.key, await ctx.get(0), _now_us(ctx)))
    await ctx.put(_now_us(ctx))


@shop.register
async def offer(ctx: Context, product: int) -> None:
    """Writes a row that lives for a time."""
    row = await ctx.rows(offers).get(product)
    ctx.emit(lived, Lived("row", product, 0 if row is None else row.at_us, _now_us(ctx)))
    await ctx.rows(offers).put(Offer(product, _now_us(ctx)))


OPERATORS: Final = [account, giver, book, clock, session, shop, notes, tally]
EVENTS: Final[list[Event[Any]]] = [
    moved,
    hopped,
    settled,
    tallied,
    given,
    withdrawn,
    made,
    ticked,
    lived,
    noted,
]

app = App("timed", OPERATORS, events=EVENTS)

"""Steps that emit events, for the programs of `proof.chaos_app`, and random ones.

["emit", n]                     emits n and the register, `n % 3 + 1` times
["emit at", n, key]             emits one at another key
["kept", n]                     register = a number that depends on all that the entity has kept of what it emitted;
                                with an odd n in the order of time, from a time on

What `["emit", n]` emits is kept for ever, the rest for a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from random import Random
from typing import Any, Final
from zlib import crc32

import msgspec

from styx.messages import EventRecord
from styx.model.app import App
from styx.model.context import Context
from styx.model.event import Event
from styx.model.kept_event import BY_TIME
from styx.relational.conditions import at_least
from styx.testing.history import SerializabilityViolation


class Happened(msgspec.Struct):
    """What a program tells of itself."""

    n: int
    register: int
    again: int = 0


happened: Event[Happened] = Event("happened", Happened, rows=True)
noticed: Event[list[int]] = Event("noticed", list[int], version=2, rows=timedelta(seconds=1))
EVENTS: Final[tuple[Event[Any], ...]] = (happened, noticed)

_KEYS: Final = ["k0", "k1", 0, 1, [0, 0], [1, 1]]


def emit(ctx: Context, n: int, register: int) -> None:
    """Emits some events of this entity."""
    for again in range(n % 3 + 1):
        ctx.emit(happened, Happened(n, register, again))


def emit_at(ctx: Context, n: int, register: int, key: Any) -> None:
    """Emits an event at another key."""
    ctx.emit(noticed, [n, register], key=tuple(key) if isinstance(key, list) else key)


async def kept(ctx: Context, n: int) -> int:
    """A number that depends on the entity's kept events."""
    if n % 2:
        since = ctx.now() - timedelta(milliseconds=n)
        of_late: list[Any] = await ctx.rows(happened).select(time=at_least(since), by=BY_TIME)
        registers: list[int] = [row.value.register for row in of_late]
        return len(of_late) + 10 * sum(register % 1_000 for register in registers)
    always = await ctx.rows(happened).select(scan=True)
    lately = await ctx.rows(noticed).keys(scan=True)
    places = [row.place for row in always]
    assert places == sorted(places), "kept events are not in the order of their places"
    return len(always) + 100 * len(lately) + crc32(" ".join([*places, *lately]).encode()) % 1_000


def check_kept(app: App, state: Mapping[tuple[str, Any], bytes], emitted: Iterable[EventRecord]) -> int:
    """What entities have kept for ever is what they have emitted, no more and no less. Returns how many events that
    are. Raises `SerializabilityViolation`.
    """
    tables = {table.full_name: table for table in app.kept.get(happened.name, {}).values()}
    there: dict[str, bytes] = {}
    for (name, _), data in state.items():
        if name in tables:
            row = tables[name].row_type.decode(data)
            if row.place in there:
                raise SerializabilityViolation(f"the event {row.place} is kept twice")
            there[row.place] = happened.encode(row.value)
    wanted = {record.id: record.payload for record in emitted if record.event == happened.name}
    if there != wanted:
        told = f"not kept {sorted(wanted.keys() - there.keys())[:3]}, never emitted {sorted(there.keys() - wanted)[:3]}"
        raise SerializabilityViolation(f"kept events are not those that were emitted: {told}")
    return len(there)


def emit_step(rng: Random) -> list[Any]:
    """A step that emits, or looks at what was kept."""
    n = rng.randrange(100)
    if rng.random() < 0.2:
        return ["kept", n]
    return ["emit at", n, rng.choice(_KEYS)] if rng.random() < 0.4 else ["emit", n]

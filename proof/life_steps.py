"""Steps on entities and rows that live for a time, for the programs of `proof.chaos_app`, and random ones.

["lives", mode, k, what, n]     does something to the entity k of `fleeting`, in a call that is "sync" or "async":
                                "touch" adds n to its value, "leave" deletes it; "light" puts its row n, "relight"
                                changes that if it is there, "snuff" deletes it; "look" reads all. register = the result
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any, Final

import msgspec

from styx.model.context import Context
from styx.model.operator import Operator
from styx.relational.declarations import Index

SECOND: Final = timedelta(seconds=1)
_KEYS: Final = 4
_ROWS: Final = 3


class Spark(msgspec.Struct, array_like=True):
    """A row that lives for a time."""

    number: int
    size: int


fleeting = Operator("fleeting", key_type=int, ttl=SECOND)
sparks = fleeting.table(
    "sparks",
    Spark,
    key="number",
    indexes=[Index("by_size", equal="size"), Index("of_size", equal="size", scope="app")],
    ttl="given",
)
by_size = sparks.view("per_size", group_by="size")


@fleeting.register
async def touch(ctx: Context, n: int) -> int:
    """Adds to the value, which lives anew."""
    value: int = await ctx.get(0) + n
    await ctx.put(value)
    return value


@fleeting.register
async def leave(ctx: Context, n: int) -> int:
    """Deletes the value."""
    await ctx.delete()
    return n


@fleeting.register
async def light(ctx: Context, n: int) -> int:
    """Puts a row; an even one lives for a second, others for two."""
    await ctx.rows(sparks).put(Spark(n % _ROWS, n % 2), ttl=SECOND * (1 + n % 2))
    return n


@fleeting.register
async def relight(ctx: Context, n: int) -> int:
    """Changes a row that is there."""
    if await ctx.rows(sparks).get(n % _ROWS) is None:
        return 0
    row: Any = await ctx.rows(sparks).update(n % _ROWS, size=n % 5)
    return int(row.size)


@fleeting.register
async def snuff(ctx: Context, n: int) -> int:
    """Deletes a row."""
    return int(await ctx.rows(sparks).delete(n % _ROWS))


@fleeting.register
async def look(ctx: Context, n: int) -> int:
    """A number that depends on everything."""
    rows = await ctx.rows(sparks).select(scan=True)
    group: Any = await ctx.rows(by_size).get(n % 2)
    found = len(await ctx.find(sparks, "of_size", size=n % 2))
    total: int = await ctx.get(0) + 10 * sum(row.number + row.size for row in rows) + 1_000 * group.count + found
    return total


async def live(ctx: Context, mode: str, key: int, what: str, n: int) -> int | None:
    """One step; None if its call does not wait."""
    if mode == "async":
        ctx.call_async(fleeting, what, key, (n,))
        return None
    result: int = await ctx.call(fleeting, what, key, (n,))
    return result


def life_step(rng: Random) -> list[Any]:
    """A random one."""
    what = rng.choice(
        ["touch", "touch", "leave", "light", "light", "light", "relight", "relight", "snuff", "look", "look"]
    )
    return ["lives", rng.choice(["sync", "async"]), rng.randrange(_KEYS), what, rng.randrange(10)]

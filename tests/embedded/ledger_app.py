"""An app for the engine's tests: a ledger that remembers what was done to it, and calls to the outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from styx import App, Context, Operator

ledger = Operator("ledger", n_partitions=4)
pair = Operator("pair", key_type=(int, str))

outside: dict[str, Callable[..., Any]] = {}
"""What `ledger.outside` calls, by name; set by a test."""

_notes: list[Path] = []


def note_into(path: Path) -> None:
    """From now on `note` writes there."""
    _notes[:] = [path]


def note(amount: int, idempotency_key: str) -> int:
    """An effect outside: a line in a file."""
    with _notes[0].open("a") as file:
        file.write(f"{idempotency_key}\n")
    return amount


class Refused(Exception): ...


@ledger.register
async def add(ctx: Context, amount: int = 1) -> int:
    total: int = (await ctx.get(0)) + amount
    await ctx.put(total)
    return total


@ledger.register
async def move(ctx: Context, to: str, amount: int) -> int:
    total: int = await ctx.get(0)
    if total < amount:
        raise Refused(f"{ctx.key} has {total}, not {amount}")
    await ctx.put(total - amount)
    ctx.call_async(ledger, "add", to, (amount,))
    return total - amount


@ledger.register
async def read(ctx: Context) -> Any:
    return await ctx.get()


@ledger.register
async def put(ctx: Context, value: Any) -> None:
    await ctx.put(value)


@ledger.register
async def put_set(ctx: Context) -> None:
    await ctx.put({1, 2})


@ledger.register
async def echo(ctx: Context, value: Any) -> Any:
    return value


@ledger.register
async def large_reply(ctx: Context, size: int) -> bytes:
    await ctx.put(1)
    return b"x" * size


@ledger.register
async def unencodable_reply(ctx: Context) -> Any:
    await ctx.put(1)
    return object()


@ledger.register
async def leave(ctx: Context) -> None:
    await ctx.put(1)
    raise SystemExit(3)


@ledger.register
async def interrupt(ctx: Context) -> None:
    await ctx.put(1)
    raise KeyboardInterrupt


@ledger.register
async def stop_iteration(ctx: Context) -> None:
    await ctx.put(1)
    raise asyncio.CancelledError


class _Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Nameless(Exception, metaclass=_Nameless):
    """An exception of a class that cannot be named."""


@ledger.register
async def nameless(ctx: Context) -> None:
    await ctx.put(1)
    raise Nameless("text")


@ledger.register
async def forever(ctx: Context) -> None:
    ctx.call_async(ledger, "forever", f"{ctx.key}")


@ledger.register
async def forever_waiting(ctx: Context) -> None:
    await ctx.call(ledger, "forever_waiting", ctx.key)


@ledger.register
async def loop(ctx: Context) -> None:
    while True:
        await ctx.put(1)


@ledger.register
async def sleep(ctx: Context) -> None:
    await ctx.put(1)
    await asyncio.sleep(0)


@ledger.register
async def mutate(ctx: Context, items: list[int]) -> list[int]:
    items.append(99)
    seen: list[int] = await ctx.get([])
    seen.append(1)
    return items


@ledger.register
async def call_outside(ctx: Context, name: str, *args: Any) -> Any:
    before: int = await ctx.get(0)
    result = await ctx.call_external(outside[name], *args)
    await ctx.put(before + 1)
    return result


@pair.register
async def count(ctx: Context) -> int:
    total: int = (await ctx.get(0)) + 1
    await ctx.put(total)
    return total


app = App("ledger", operators=[ledger, pair])

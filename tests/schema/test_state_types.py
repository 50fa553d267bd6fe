"""What happens to state that an earlier version stored when a later one has another state type."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import styx
from styx import App, Context, Operator
from styx.errors import ConfigurationError


class Before(msgspec.Struct):
    balance: int
    note: str = ""


class WithDefault(msgspec.Struct):
    balance: int
    currency: str = "EUR"


class WithoutDefault(msgspec.Struct):
    balance: int
    currency: str


def version(state_type: Any) -> App:
    account = Operator("account", state_type=state_type)

    @account.register
    async def open(ctx: Context, balance: int) -> None:
        await ctx.put(state_type(balance))

    @account.register
    async def look(ctx: Context) -> Any:
        return await ctx.get()

    return App("bank", [account])


async def request(app: App, directory: Path, function: str, *arguments: Any) -> styx.Reply:
    async with styx.embedded(app, data_dir=directory) as client:
        return await client.request("account", "ada", function, *arguments)


def test_new_fields_have_defaults_and_old_ones_are_left_out(tmp_path: Path) -> None:
    assert asyncio.run(request(version(Before), tmp_path, "open", 5)).error is None
    assert asyncio.run(request(version(WithDefault), tmp_path, "look")).result == {"balance": 5, "currency": "EUR"}


def test_state_that_does_not_fit_is_refused_and_stays(tmp_path: Path) -> None:
    """Although the source is the same: the type is given to a function of it."""
    assert asyncio.run(request(version(Before), tmp_path, "open", 5)).error is None
    with pytest.raises(ConfigurationError, match=r"account\['ada'\]: missing required field 'currency'"):
        asyncio.run(request(version(WithoutDefault), tmp_path, "look"))
    assert asyncio.run(request(version(Before), tmp_path, "look")).result == {"balance": 5, "note": ""}


class Timed(msgspec.Struct):
    at: datetime


def clock(state_type: Any) -> App:
    clock = Operator("account", state_type=state_type)

    @clock.register
    async def start(ctx: Context) -> None:
        await ctx.put({"at": datetime(2026, 1, 2, tzinfo=UTC)})

    @clock.register
    async def look(ctx: Context) -> Any:
        return await ctx.get()

    return App("bank", [clock])


def test_a_datetime_that_was_stored_without_a_type_is_read_with_one(tmp_path: Path) -> None:
    assert asyncio.run(request(clock(None), tmp_path, "start")).error is None
    reply = asyncio.run(request(clock(Timed), tmp_path, "look"))
    assert (reply.error, reply.result) == (None, {"at": datetime(2026, 1, 2, tzinfo=UTC)})

"""The change feed over starts on one data directory, also with other versions of the app: what a version converts is a
gap that is told.
"""

from __future__ import annotations

from typing import Any

import pytest

from styx.errors import SnapshotTooOld
from tests.embedded.app_files import Edited

pytestmark = pytest.mark.anyio
PUT = "async def put(ctx: Context, value: int) -> None:\n    await ctx.put({'n': value})\n"
TYPE = "class Account(msgspec.Struct):\n    count: int\n"
CONVERTED = "Operator('acc', state_type=Account, migrate=lambda old: {'count': old['n']})"
SET = "async def set(ctx: Context, value: int) -> None:\n    await ctx.put(Account(value))\n"


@pytest.mark.parametrize("end", ["close", "crash"])
async def test_who_followed_the_version_before_a_conversion_is_told(edited: Edited, end: str) -> None:
    def app() -> Any:
        return edited.app(CONVERTED, SET, more=TYPE)

    async with edited.open(edited.app(functions=PUT)) as client, client.changes("acc") as reader:
        await reader.begin()
        await client.call("acc", "k", "put", 5)
        place = (await anext(reader)).epoch + 1
    client = edited.open(app())
    async with client:
        with pytest.raises(SnapshotTooOld):
            await client.changes("acc", from_epoch=place).begin()
        async with client.changes("acc") as reader:
            began = await reader.begin()
            read = await client.read("acc", "k", freshness="latest")
            assert (read.result["count"], read.epoch >= began) == (5, True)
            await client.call("acc", "k", "set", 6)
            [change] = (await anext(reader)).changes
            assert change.value.count == 6
            place = began + 1
        if end == "crash":
            client.crash()
    async with edited.open(app()) as client:
        if end == "crash":  # what was converted may be converted again: who has followed from behind it goes on
            async with client.changes("acc", from_epoch=place) as reader:
                [change] = (await anext(reader)).changes
                assert change.value.count == 6
        with pytest.raises(SnapshotTooOld):
            await client.changes("acc", from_epoch=began).begin()


async def test_who_followed_before_a_crash_goes_on_although_there_is_no_snapshot(edited: Edited) -> None:
    app = edited.app(functions=PUT)
    client = edited.open(app)
    async with client, client.changes("acc") as reader:
        await reader.begin()
        await client.call("acc", "k", "put", 5)
        first = await anext(reader)
        await client.call("acc", "k", "put", 6)
        second = await anext(reader)
        assert await client.engine.flushed()
        assert client.engine.last_snapshot_epoch is None
        client.crash()
    async with edited.open(app) as client, client.changes("acc", from_epoch=first.epoch + 1) as reader:
        assert await anext(reader) == second
        await client.call("acc", "k", "put", 7)
        assert (await anext(reader)).changes[0].value == {"n": 7}

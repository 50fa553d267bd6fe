"""A snapshot on demand, and the last one of `close`, while another one is under way."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path

import pytest

import styx
from styx import App, Context, Operator
from styx.store.directory import DirectoryStore
from styx.testing.patience import PATIENCE_SECONDS
from tests.embedded.ledger_app import app

pytestmark = pytest.mark.anyio

SECONDS_MAX = PATIENCE_SECONDS
SECOND_US = 1_000_000

clock = Operator("clock", key_type=int)


@clock.cron("* * * * * *", key=1)
async def tick(ctx: Context) -> None:
    await ctx.put(await ctx.get(0) + 1)


class SlowStore:
    """Takes nothing until it is `opened`; `asked` once somebody has tried."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = threading.Event()
        self.asked = threading.Event()
        put = DirectoryStore.put

        def slow(store: DirectoryStore, name: str, data: bytes) -> None:
            self.asked.set()
            assert self.opened.wait(SECONDS_MAX)
            put(store, name, data)

        monkeypatch.setattr(DirectoryStore, "put", slow)


@pytest.mark.parametrize("since", [0, 1])
async def test_closing_waits_for_the_one_under_way_and_takes_what_came_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, since: int
) -> None:
    client = styx.embedded(app, tmp_path, snapshot_interval=1000)
    async with client:
        await client.call("ledger", "a", "add")
        store = SlowStore(monkeypatch)
        first = asyncio.create_task(client.engine.snapshot())
        assert await asyncio.to_thread(store.asked.wait, SECONDS_MAX)
        for _ in range(since):
            await client.call("ledger", "a", "add")
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        store.opened.set()
        await closing
        await first
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    async with styx.embedded(app, tmp_path) as client:
        assert client.entity("ledger", "a") == 1 + since
        assert not client.engine.counters.epochs  # nothing was replayed


async def test_closing_does_not_wait_for_what_becomes_due_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A cron that ticks once while the last snapshot is stored: with one each second there is always something new."""
    client = styx.embedded(App("ticking", [clock]), tmp_path, snapshot_interval=1000)
    async with client:
        engine = client.engine
        await engine.set_forward(SECOND_US)
        while client.entity("clock", 1) is None:  # noqa: ASYNC110 - an engine's state tells nobody
            await asyncio.sleep(0)
        store = SlowStore(monkeypatch)
        closing = asyncio.create_task(client.close())
        assert await asyncio.to_thread(store.asked.wait, SECONDS_MAX)
        ticks = client.entity("clock", 1)
        await engine.set_forward(2 * SECOND_US)
        while client.entity("clock", 1) == ticks:  # noqa: ASYNC110
            await asyncio.sleep(0)
        store.opened.set()
        await closing
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]

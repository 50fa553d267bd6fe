"""A snapshot on demand, and the last one of `close`, while another one is under way."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path

import pytest

import styx
from styx.store.directory import DirectoryStore
from styx.testing.patience import PATIENCE_SECONDS
from tests.embedded.ledger_app import app

pytestmark = pytest.mark.anyio

SECONDS_MAX = PATIENCE_SECONDS


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

"""Clients belong to the event loop and the process that opened them; used elsewhere they refuse, and send nothing."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

import styx
from styx import ConfigurationError
from styx.client.http import HttpClient
from tests.embedded.ledger_app import app
from tests.forking import in_fork
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


def _refusal(use: Callable[[], Any]) -> str:
    with pytest.raises(ConfigurationError) as refused:
        use()
    return str(refused.value)


def _on_another_loop(use: Callable[[], Any]) -> str:
    async def used() -> str:
        return _refusal(use)

    return asyncio.run(used())


async def test_the_embedded_client_from_another_thread() -> None:
    async with styx.embedded(app) as client:
        for elsewhere, seen in ((_refusal, "no event loop runs here"), (_on_another_loop, "another event loop")):
            said = await asyncio.to_thread(elsewhere, lambda: client.submit("ledger", "a", "add"))
            assert seen in said
            assert "nothing was sent" in said
            assert "styx.embedded_sync" in said
        said = await asyncio.to_thread(_refusal, lambda: asyncio.run(client.call("ledger", "a", "add")))
        assert "nothing was sent" in said
        said = await asyncio.to_thread(_refusal, lambda: asyncio.run(client.load("ledger", [("a", 1)])))
        assert "nothing was sent" in said
        await asyncio.to_thread(_refusal, lambda: asyncio.run(client.close()))
        assert client.engine.log.lsn == 1  # the generation's marker: no request
        assert await client.call("ledger", "a", "add") == 1


async def test_the_http_client_from_another_thread(url: str, engine: FakeEngine) -> None:
    async with HttpClient(url) as client:
        for use in (
            lambda: client.submit("shelf", "a", "key"),
            lambda: asyncio.run(client.call("shelf", "a", "key")),
            lambda: asyncio.run(client.load("shelf", [("a", 1)])),
            lambda: asyncio.run(client.close()),
        ):
            assert "styx.connect_sync(url)" in await asyncio.to_thread(_refusal, use)
        assert engine.requests == []
        assert await client.call("shelf", "a", "key") == "'a'"


async def test_the_embedded_client_in_a_fork() -> None:
    async with styx.embedded(app) as client:

        def use() -> str:
            return _refusal(lambda: asyncio.run(client.call("ledger", "a", "add")))

        said = await asyncio.to_thread(in_fork, use)
        assert f"was opened in process {os.getpid()}, of which this process" in said

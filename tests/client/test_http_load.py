"""Bulk loads through a gateway on a real socket, from the asynchronous and the blocking client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

import styx
from styx import App, LoadFailed, LoadReport, Operator
from styx.client import load as load_module
from styx.client.embedded import EmbeddedClient
from styx.client.http import ATTEMPTS_MAX, HttpClient
from styx.errors import ConfigurationError
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct):
    price: Decimal


plain = Operator("plain")
item = Operator("item", key_type=(int, str), state_type=Item)
app = App("shop", [plain, item])


@pytest.fixture(scope="module")
async def served_engine() -> AsyncIterator[tuple[EmbeddedClient, str]]:
    async with styx.embedded(app) as client, running(client.engine) as server:
        yield client, server.url


@pytest.fixture
def there(served_engine: tuple[EmbeddedClient, str]) -> EmbeddedClient:
    return served_engine[0]


@pytest.fixture
def url(served_engine: tuple[EmbeddedClient, str]) -> str:
    return served_engine[1]


async def test_values_arrive_as_what_they_are(there: EmbeddedClient, url: str) -> None:
    values: dict[str, Any] = {
        "values-1": {1: b"\xff", "x": [1.5, None, (1, 2)]},
        "values-2": datetime(2026, 1, 2),  # noqa: DTZ001 - a state may be one
        "values-3": float("inf"),
    }
    async with HttpClient(url) as client:
        assert await client.load("plain", values.items()) == LoadReport(3, 1)
        assert await client.load(item, [((1, "a"), Item(Decimal("1.50")))]) == LoadReport(1, 1)
    assert there.entity(plain, "values-1") == {1: b"\xff", "x": [1.5, None, [1, 2]]}
    assert [there.entity(plain, key) for key in ("values-2", "values-3")] == [values["values-2"], values["values-3"]]
    assert there.entity(item, (1, "a")) == Item(Decimal("1.50"))


async def test_many(there: EmbeddedClient, url: str) -> None:
    async with HttpClient(url) as client:
        report = await client.load(plain, ((f"many-{n}", n) for n in range(10_000)))
    assert report == LoadReport(10_000, 3)
    assert there.entity(plain, "many-9999") == 9999


async def test_a_key_that_exists_is_named(there: EmbeddedClient, url: str) -> None:
    await there.load(plain, [("exists-5000", 0)])
    async with HttpClient(url) as client:
        with pytest.raises(LoadFailed) as caught:
            await client.load(plain, [(f"exists-{n}", n) for n in range(9000)])
        failed = caught.value
        assert (failed.type, failed.code, failed.key, failed.index) == ("KeyExists", "aborted", "exists-5000", 5000)
        assert failed.loaded == sum(str(key).startswith("exists-") for _, key in there.state()) - 1
        assert (await client.load(plain, [("exists-5000", 1)], replace=True)).loaded == 1


async def test_a_value_that_does_not_fit_is_named(url: str) -> None:
    async with HttpClient(url) as client:
        with pytest.raises(LoadFailed, match=r"pair 1: .*item.*cannot be loaded") as caught:
            await client.load("item", [((2, "a"), {"price": "1"}), ((2, "b"), {"price": []})])
        assert (caught.value.code, caught.value.key) == ("bad_arguments", (2, "b"))
        with pytest.raises(LoadFailed, match="pair 0: BadArguments: plain"):
            await client.load("plain", [("a", {1, 2})])
        with pytest.raises(LoadFailed, match="pair 0: BadKey"):
            await client.load("plain", [(1.5, 1)])  # type: ignore[list-item]
        with pytest.raises(LoadFailed, match="has no operator") as caught:
            await client.load("plane", [("a", 1)])
        assert caught.value.code == "unknown_operator"


async def test_an_answer_that_is_lost_is_asked_for_again(
    there: EmbeddedClient, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module, "REPEAT_WAIT_FIRST_SECONDS", 0.0)
    lost = 0
    original = HttpClient._exchange

    async def exchange(self: HttpClient, *arguments: Any) -> Any:
        nonlocal lost
        answer = await original(self, *arguments)
        lost += 1
        if lost % 2:
            raise ConnectionError("the connection broke")
        return answer

    monkeypatch.setattr(HttpClient, "_exchange", exchange)
    async with HttpClient(url) as client:
        assert (await client.load(plain, [(f"lost-{n}", n) for n in range(9000)])).loaded == 9000
    assert lost == 6, "each message was answered twice and loaded once"


async def test_a_gateway_that_is_away_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "REPEAT_WAIT_FIRST_SECONDS", 0.0)
    attempts = 0
    original = HttpClient._exchange

    async def exchange(self: HttpClient, *arguments: Any) -> Any:
        nonlocal attempts
        attempts += 1
        return await original(self, *arguments)

    monkeypatch.setattr(HttpClient, "_exchange", exchange)
    async with HttpClient("http://127.0.0.1:1") as client:
        with pytest.raises(LoadFailed, match="is the gateway running there") as caught:
            await client.load("plain", [("a", 1)])
    assert (caught.value.code, attempts) == ("unavailable", ATTEMPTS_MAX)


async def test_a_client_that_is_not_open(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not open"):
        await HttpClient(url).load("plain", [("a", 1)])


async def test_the_blocking_client(there: EmbeddedClient, url: str) -> None:
    done: list[Any] = []

    def load() -> None:
        with styx.connect_sync(url) as client:
            done.append(client.load(plain, [(f"sync-{n}", n) for n in range(100)]))
            try:
                client.load(plain, [("sync-7", 7)])
            except LoadFailed as failed:
                done.append(failed.key)

    thread = threading.Thread(target=load)
    thread.start()
    while thread.is_alive():  # noqa: ASYNC110 - the thread has no event to wait for
        await asyncio.sleep(0.01)
    assert done == [LoadReport(100, 1), "sync-7"]
    assert there.entity(plain, "sync-99") == 99

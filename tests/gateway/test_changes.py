"""The change feed over HTTP: server-sent events, their place, what is refused, and the ends of streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from styx import App, Context, Operator
from styx.embedded_engine.changes import Mailbox
from styx.errors import ConfigurationError
from styx.gateway import changes as change_endpoint
from styx.gateway import server_sent
from styx.gateway.auth.identity import Identity
from styx.gateway.auth.policy import CHANGES, Action, action_of, parse
from styx.gateway.openapi import openapi
from styx.testing import EmbeddedCluster, embedded_cluster
from styx.values.event_lines import Block, BlockReader
from tests.gateway.running import Running, running

pytestmark = pytest.mark.anyio

cart = Operator("cart")
other = Operator("other")


class Item(msgspec.Struct):
    sku: str
    quantity: int


items = cart.table("items", Item, key="sku")


@cart.register
async def add(ctx: Context, sku: str, quantity: int) -> None:
    ctx.rows(items).put(Item(sku, quantity))
    ctx.put({"skus": quantity})


@cart.register
async def empty(ctx: Context) -> None:
    await ctx.rows(items).delete_where()
    ctx.delete()


@other.register
async def note(ctx: Context, text: str) -> None:
    ctx.put(text)


app = App("shop", [cart, other])


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with embedded_cluster(app) as cluster:
        yield cluster


@pytest.fixture
async def server(cluster: EmbeddedCluster) -> AsyncIterator[Running]:
    async with running(cluster.engine) as server:
        yield server


class Reader:
    """The blocks of one stream, one by one."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._reader = BlockReader()
        self._blocks: list[Block] = []

    async def block(self) -> Block:
        while not self._blocks:
            self._blocks = self._reader.take(await self._response.content.readany())
        return self._blocks.pop(0)

    async def epoch(self) -> tuple[str | None, dict[str, Any]]:
        """The next event: its id, and what it says."""
        while (found := await self.block()).data is None:
            pass
        return found.id, json.loads(found.data)


@asynccontextmanager
async def stream(url: str, **headers: str) -> AsyncIterator[Reader]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        assert response.status == 200, await response.text()
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        yield Reader(response)


async def get(url: str, **headers: str) -> tuple[int, dict[str, Any]]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, await response.json()


async def test_events_are_as_the_openapi_document_describes_them(cluster: EmbeddedCluster, server: Running) -> None:
    document: Any = openapi(app)
    validate(document)
    paths = {"cart": "/v1/~changes/cart", "cart/items": "/v1/~changes/cart/{table}", "other": "/v1/~changes/other"}
    assert "/v1/~changes/other/{table}" not in document["paths"]
    for number, (followed, path) in enumerate(paths.items()):
        found = document["paths"][path]["get"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
        described = Draft202012Validator({**found, "components": document["components"]})
        async with stream(f"{server.url}/v1/~changes/{followed}") as reader:
            await reader.block()
            await cluster.request("cart", "ada", "add", "tea", number)
            await cluster.request("other", "bob", "note", f"{number}")
            _, event = await reader.epoch()
            described.validate(event)
            assert not described.is_valid({**event, "epoch": "first"})
            [change, *_] = event["changes"]
            assert not described.is_valid({**event, "changes": [{**change, "deleted": 1}]})
            assert not described.is_valid({**event, "changes": [{"value": 1}]})


async def test_an_epoch_has_its_changes_and_its_number(cluster: EmbeddedCluster, server: Running) -> None:
    async with stream(f"{server.url}/v1/~changes/cart") as reader:
        begun = await reader.block()
        assert begun.data is None
        assert begun.id is not None
        reply = await cluster.request("cart", "ada", "add", "tea", 2)
        its_id, told = await reader.epoch()
        assert its_id == str(reply.epoch) == str(told["epoch"])
        assert int(its_id) > int(begun.id)
        assert sorted(told["changes"], key=str) == sorted(
            [
                {"key": "ada", "value": {"skus": 2}},
                {"table": "items", "key": "ada", "row_key": "tea", "value": {"sku": "tea", "quantity": 2}},
            ],
            key=str,
        )
        await cluster.call("other", "x", "note", "nothing for this reader")
        await cluster.call("cart", "ada", "empty")
        _, told = await reader.epoch()
        assert {(each["key"], each.get("row_key"), each.get("deleted")) for each in told["changes"]} == {
            ("ada", None, True),
            ("ada", "tea", True),
        }


async def test_one_table_alone(cluster: EmbeddedCluster, server: Running) -> None:
    async with stream(f"{server.url}/v1/~changes/cart/items") as reader:
        await cluster.call("cart", "ada", "add", "tea", 2)
        _, told = await reader.epoch()
        assert [each["table"] for each in told["changes"]] == ["items"]


async def test_a_reader_goes_on_behind_the_id_and_gets_no_epoch_twice(
    cluster: EmbeddedCluster, server: Running
) -> None:
    url = f"{server.url}/v1/~changes/cart"
    async with stream(url) as reader:
        await cluster.call("cart", "ada", "add", "tea", 1)
        its_id, _ = await reader.epoch()
    assert its_id is not None
    for number in range(2, 5):
        await cluster.call("cart", "ada", "add", "tea", number)
    for place, headers in ((f"?from={int(its_id) + 1}", {}), ("?from=0", {"Last-Event-ID": its_id})):
        async with stream(url + place, **headers) as reader:
            assert (await reader.block()).id == its_id
            seen = [(await reader.epoch())[1]["changes"][0]["value"] for _ in range(3)]
            assert [each.get("quantity", each.get("skus")) for each in seen] == [2, 3, 4]


async def test_an_epoch_with_much_comes_in_parts_and_the_last_has_the_id(
    cluster: EmbeddedCluster, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_endpoint, "BLOCK_BYTES", 20)
    async with stream(f"{server.url}/v1/~changes/cart") as reader:
        await cluster.call("cart", "ada", "add", "tea", 1)
        first, second = await reader.epoch(), await reader.epoch()
    assert first[0] is None
    assert first[1]["more"] is True
    assert second[0] == str(second[1]["epoch"]) == str(first[1]["epoch"])
    assert "more" not in second[1]


async def test_progress_is_told_where_nothing_changes(
    cluster: EmbeddedCluster, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_sent, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(change_endpoint, "PROGRESS_SECONDS", 0.01)
    monkeypatch.setattr(change_endpoint, "HEARTBEAT_SECONDS", 0.01)
    async with stream(f"{server.url}/v1/~changes/cart") as reader:
        await reader.block()
        reply = await cluster.request("other", "x", "note", "y")
        found = await reader.block()
        assert (found.id, found.data) == (str(reply.epoch), None)
        raw = await reader._response.content.readany()
        assert raw.startswith(b":\n\n")


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/~changes/nix", 404, "unknown_operator"),
        ("/v1/~changes/cart/nix", 400, "bad_request"),
        ("/v1/~changes/cart/items/more", 404, "not_found"),
        ("/v1/~changes/", 404, "not_found"),
        ("/v1/~changes/cart?from=x", 400, "bad_request"),
        ("/v1/~changes/cart?from=-1", 400, "bad_request"),
        ("/v1/~changes/cart?from=1&from=2", 400, "bad_request"),
        ("/v1/~changes/cart?since=1", 400, "bad_request"),
        ("/v1/~changes/cart?from=5000", 400, "bad_request"),
        ("/v1/~changes/cart?from=0", 410, "snapshot_too_old"),
    ],
)
async def test_what_is_refused(cluster: EmbeddedCluster, server: Running, path: str, status: int, code: str) -> None:
    await cluster.call("cart", "ada", "add", "tea", 1)
    found, body = await get(server.url + path)
    assert (found, body["error"]["code"]) == (status, code), body
    assert (body["error"]["type"] == "SnapshotTooOld") == (status == 410)


async def test_another_method_is_refused(server: Running) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{server.url}/v1/~changes/cart") as response:
        assert response.status == 405
        assert response.headers["allow"] == "GET, HEAD"


async def test_so_many_readers_and_no_more(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_endpoint, "READERS_MAX", 1)
    async with stream(f"{server.url}/v1/~changes/cart") as reader:
        await reader.block()
        status, body = await get(f"{server.url}/v1/~changes/cart")
        assert (status, body["error"]["code"]) == (429, "overloaded")
        async with aiohttp.ClientSession() as session, session.get(f"{server.url}/metrics") as response:
            assert "styx_gateway_change_readers 1" in await response.text()


async def test_a_reader_that_waits_for_a_worker_is_one_of_them(
    cluster: EmbeddedCluster, server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_endpoint, "READERS_MAX", 1)
    monkeypatch.setattr(change_endpoint, "BEGIN_SECONDS_MAX", 1.0)
    monkeypatch.setattr(Mailbox, "put", lambda *_: None)  # nobody is told where it begins
    found = await asyncio.gather(*(get(f"{server.url}/v1/~changes/cart") for _ in range(2)))
    assert sorted(status for status, _ in found) == [429, 503]
    monkeypatch.undo()
    async with stream(f"{server.url}/v1/~changes/cart") as reader:
        await reader.block()
    assert len(cluster.engine.changes.followers) <= 1, "who was refused follows no more"


async def test_an_engine_that_ends_says_so_in_its_streams(cluster: EmbeddedCluster, server: Running) -> None:
    async with stream(f"{server.url}/v1/~changes/cart") as reader:
        await reader.block()
        cluster.engine.crash()
        found = await asyncio.wait_for(reader.block(), 10)
        assert found.name == "error"
        assert json.loads(found.data or b"")["error"]["code"] == "unavailable"


def test_a_policy_allows_it_by_a_rule_of_its_own() -> None:
    def scope(method: str, path: str) -> dict[str, Any]:
        return {"type": "http", "method": method, "path": path, "raw_path": path.encode()}

    action = action_of(scope("GET", "/v1/~changes/cart/items"))
    assert action == Action(CHANGES, "cart")
    assert action_of(scope("POST", "/v1/~changes/cart")) is None
    assert action_of(scope("GET", "/v1/~changes/cart/items/x")) is None
    buyer = Identity("buyer", "f", {"role": "buyer", "sub": "ada"})
    assert parse(b'[[allow]]\nchanges = ["cart"]').allows(buyer, action)
    assert not parse(b'[[allow]]\nchanges = ["car"]').allows(buyer, action)
    others = b'[[allow]]\nread = ["*"]\ncall = ["*"]\nload = ["*"]\nevents = ["*"]\ndead = ["*"]\nsee = ["*"]'
    assert not parse(others).allows(buyer, action), "rules from before there was a feed allow none"
    own = b'[[allow]]\nclaims = {role = "buyer"}\nentity = "sub"\n'
    assert not parse(own + b'read = ["cart"]').allows(buyer, action), "others' changes are in the stream"
    with pytest.raises(ConfigurationError, match="rule 1 has entity and changes"):
        parse(own + b'changes = ["cart"]')

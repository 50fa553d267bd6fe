"""Streams of events over HTTP: server-sent events, their place, what is refused, and the ends of streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from styx import App, Operator
from styx.errors import ConfigurationError
from styx.gateway import events as event_endpoint
from styx.gateway import server_sent
from styx.gateway.asyncapi import asyncapi
from styx.gateway.auth.identity import Identity
from styx.gateway.auth.policy import CALL, EVENTS, READ, Action, action_of, parse
from styx.gateway.docs_page import docs_page
from styx.gateway.openapi import openapi
from styx.model.event_seen import BEGINNING
from styx.testing import EmbeddedCluster, embedded_cluster
from styx.values.event_lines import Block, BlockReader, block
from tests.embedded.event_app import shop
from tests.gateway.running import Running, running

pytestmark = pytest.mark.anyio


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with embedded_cluster(shop()) as cluster:
        yield cluster


@pytest.fixture
async def server(cluster: EmbeddedCluster) -> AsyncIterator[Running]:
    async with running(cluster.engine) as server:
        yield server


async def _get(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        return response.status, {name.lower(): value for name, value in response.headers.items()}, await response.read()


async def test_each_event_has_its_cursor_and_its_json(cluster: EmbeddedCluster, server: Running) -> None:
    await cluster.call("order", "a", "pay", 5)
    status, headers, body = await _get(f"{server.url}/v1/events/order-paid?follow=false")
    assert status == 200
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    [found] = BlockReader().take(body)
    [event] = await cluster.events("order-paid")
    assert found.id == event.cursor
    assert found.data is not None
    told = json.loads(found.data)
    assert told["value"] == {"amount": 5, "by": "a"}
    assert (told["event"], told["operator"], told["key"], told["tid"]) == ("order-paid", "order", "a", event.tid)


async def test_the_id_of_a_browser_that_comes_again_counts_more_than_the_url(
    cluster: EmbeddedCluster, server: Running
) -> None:
    for number in range(4):
        await cluster.call("order", "a", "pay", number)
    found = await cluster.events("order-paid")
    url = f"{server.url}/v1/events/order-paid?follow=false&after={found[0].cursor}"
    _, _, body = await _get(url)
    assert [each.id for each in BlockReader().take(body) if each.data] == [each.cursor for each in found[1:]]
    _, _, body = await _get(url, **{"Last-Event-ID": found[2].cursor})
    assert [each.id for each in BlockReader().take(body) if each.data] == [found[3].cursor]


async def test_from_now_on_begins_with_a_place(cluster: EmbeddedCluster, server: Running) -> None:
    """A reader that has had no event yet and comes again misses none."""
    _, _, body = await _get(f"{server.url}/v1/events/order-paid?follow=false&after=end")
    assert BlockReader().take(body) == [Block(BEGINNING, "", None)]
    await cluster.call("order", "a", "pay", 1)
    [event] = await cluster.events("order-paid")
    _, _, body = await _get(f"{server.url}/v1/events/order-paid?follow=false&after=end")
    assert BlockReader().take(body) == [Block(event.cursor, "", None)]


WRONG = [
    ("events/nix", 404, "has no event 'nix'; it has: noted, order-paid"),
    ("events/order-paid?after=5", 400, "after= takes the cursor"),
    ("events/order-paid?after=", 400, "after= takes the cursor"),
    ("events/order-paid?after=end&after=end", 400, "each once"),
    ("events/order-paid?follow=yes", 400, "follow is true or false"),
    ("events/order-paid?follow=", 400, "follow is true or false"),
    ("events/order-paid?since=1", 400, "takes after and follow"),
    ("events/%ff", 400, "percent-encoded UTF-8"),
    ("events/", 404, ""),
    ("events", 404, "has no operator 'events'"),
    ("events/order-paid/x", 404, ""),
]


@pytest.mark.parametrize(("path", "status", "message"), WRONG, ids=range(len(WRONG)))
async def test_wrong_requests_are_refused(server: Running, path: str, status: int, message: str) -> None:
    found, _, body = await _get(f"{server.url}/v1/{path}")
    assert found == status, body
    assert message in json.loads(body)["error"]["message"]


async def test_a_wrong_id_is_refused(server: Running) -> None:
    status, _, _ = await _get(f"{server.url}/v1/events/order-paid", **{"Last-Event-ID": "7"})
    assert status == 400


async def test_another_method_is_refused(server: Running) -> None:
    async with aiohttp.ClientSession() as session:
        for method in ("PUT", "DELETE"):
            async with session.request(method, f"{server.url}/v1/events/order-paid") as response:
                assert response.status in (404, 405)
        async with session.head(f"{server.url}/v1/events/order-paid") as response:
            assert response.status == 200
            assert response.content_type == "text/event-stream"


async def test_one_reader_more_than_the_limit_is_refused(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_endpoint, "STREAMS_MAX", 2)
    url = f"{server.url}/v1/events/order-paid"
    async with aiohttp.ClientSession() as session, session.get(url) as one, session.get(url) as two:
        assert (one.status, two.status) == (200, 200)
        async with session.get(url) as three:
            assert three.status == 429
            assert "2 readers of events are connected" in await three.text()


async def test_a_silent_stream_gets_comments(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_endpoint, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(server_sent, "LOOK_SECONDS", 0.01)
    async with (
        asyncio.timeout(20),
        aiohttp.ClientSession() as session,
        session.get(f"{server.url}/v1/events/order-paid") as response,
    ):
        seen = b""
        while seen.count(b":\n\n") < 4:
            seen += await response.content.readany()
        assert BlockReader().take(seen) == []


async def test_a_gateway_that_ends_says_so_in_its_streams(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_sent, "LOOK_SECONDS", 0.01)
    async with (
        asyncio.timeout(20),
        aiohttp.ClientSession() as session,
        session.get(f"{server.url}/v1/events/order-paid") as response,
    ):
        server.stop.set()
        [last] = BlockReader().take(await response.read())
    assert last.name == "error"
    assert b"the gateway is shutting down" in (last.data or b"")
    await server.task


async def test_a_reader_that_is_gone_is_noticed(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_endpoint, "STREAMS_MAX", 1)
    url = f"{server.url}/v1/events/order-paid"
    async with asyncio.timeout(20):
        for _ in range(3):
            while True:
                async with aiohttp.ClientSession() as session, session.get(url) as response:
                    if response.status == 200:
                        break
                await asyncio.sleep(0.01)


async def test_metrics_count_readers_and_events(cluster: EmbeddedCluster, server: Running) -> None:
    await cluster.call("order", "a", "pay", 5)
    await _get(f"{server.url}/v1/events/order-paid?follow=false")
    _, _, text = await _get(f"{server.url}/metrics")
    assert b"styx_gateway_events_sent_total 1" in text
    assert b"styx_gateway_event_streams 0" in text


# The format ------------------------------------------------------------------------------------------------


def test_blocks_come_whole_however_they_are_cut() -> None:
    text = block("1", b'{"a":1}') + b":\n\n" + block(None, b"x", "error") + block("2", None)
    for step in range(1, len(text)):
        reader = BlockReader()
        found = [each for at in range(0, len(text), step) for each in reader.take(text[at : at + step])]
        assert found == [Block("1", "", b'{"a":1}'), Block(None, "error", b"x"), Block("2", "", None)]


def test_a_block_without_an_end_is_no_gateways() -> None:
    with pytest.raises(ValueError, match="more than 100 bytes"):
        BlockReader(100).take(b"x" * 101)


# Who may read them -----------------------------------------------------------------------------------------


def _action(method: str, path: str, has_events: bool = True) -> Action | None:
    return action_of({"method": method, "path": path, "raw_path": path.encode(), "root_path": ""}, lambda: has_events)


def test_the_action_of_a_stream() -> None:
    assert _action("GET", "/v1/events/order-paid") == Action(EVENTS, "order-paid")
    assert _action("HEAD", "/v1/events/order-paid") == Action(EVENTS, "order-paid")
    assert _action("GET", "/v1/events/order-paid", has_events=False) == Action(READ, "events", "order-paid")
    assert _action("GET", "/v1/events/a/b") == Action(CALL, "events.b", "a")


def test_rules_allow_events_by_name() -> None:
    policy = parse(b'[[allow]]\nkeys = ["shop"]\nevents = ["order-*"]\n[[allow]]\nkeys = ["all"]\nread = ["*"]')
    shop_key, other = Identity("shop", "key"), Identity("all", "key")
    assert policy.allows(shop_key, Action(EVENTS, "order-paid"))
    assert not policy.allows(shop_key, Action(EVENTS, "noted"))
    assert not policy.allows(other, Action(EVENTS, "order-paid")), "who reads entities reads no events"
    assert not policy.allows(shop_key, Action(READ, "events", "order-paid"))


@pytest.mark.parametrize(
    "text",
    [
        b"[[allow]]\nevents=['*a']",
        b"[[allow]]\nevents='a'",
        b"[[allow]]\nevents=['']",
        b"[[allow]]\nclaims={a='b'}\nentity='sub'\nevents=['a']",
    ],
    ids=range(4),
)
def test_wrong_rules_are_refused(text: bytes) -> None:
    with pytest.raises(ConfigurationError):
        parse(text)


# Descriptions ----------------------------------------------------------------------------------------------


def test_the_openapi_document_of_an_app_with_events_is_valid() -> None:
    document: Any = json.loads(json.dumps(openapi(shop())))
    OpenAPIV31SpecValidator(document).validate()
    stream = document["paths"]["/v1/events/order-paid"]["get"]
    schema = stream["responses"]["200"]["content"]["text/event-stream"]["schema"]
    assert schema["properties"]["value"] == {"$ref": "#/components/schemas/Paid"}


def test_the_asyncapi_document_names_each_event_twice() -> None:
    document: Any = json.loads(json.dumps(asyncapi(shop())))
    assert document["asyncapi"] == "3.0.0"
    assert document["channels"]["kafka.order-paid"]["address"] == "styx.shop.events.order-paid"
    assert document["channels"]["http.order-paid"]["address"] == "/v1/events/order-paid"
    assert document["components"]["messages"]["kafka.order-paid"]["payload"] == {"$ref": "#/components/schemas/Paid"}
    for operation in document["operations"].values():
        assert operation["action"] == "send"
        for reference in [operation["channel"], *operation["messages"]]:
            assert _found(document, reference["$ref"])
    for channel in document["channels"].values():
        assert all(_found(document, each["$ref"]) for each in channel["messages"].values())


def _found(document: Any, reference: str) -> Any:
    for part in reference.removeprefix("#/").split("/"):
        document = document[part]
    return document


async def test_the_documents_are_served(server: Running) -> None:
    status, headers, body = await _get(f"{server.url}/asyncapi.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(body)["info"]["title"] == "shop"


async def test_an_app_without_events_has_no_asyncapi_document() -> None:
    app = App("none", [Operator("a")])
    async with embedded_cluster(app) as cluster, running(cluster.engine) as server:
        status, _, body = await _get(f"{server.url}/asyncapi.json")
        assert status == 404
        assert b"declares no events" in body
    assert "events" not in docs_page(app)


def test_the_docs_page_lists_events() -> None:
    page = docs_page(shop())
    assert 'href="v1/events/order-paid?follow=false"' in page
    assert "asyncapi.json" in page


async def test_nothing_is_gathered_for_a_reader_that_takes_nothing(cluster: EmbeddedCluster, server: Running) -> None:
    for number in range(60):
        await cluster.call("order", "a", "note", f"{number}" + "x" * 400_000)
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=2**16)
    writer.write(b"GET /v1/events/noted HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readexactly(1)

    async def sent() -> int:
        _, _, text = await _get(f"{server.url}/metrics")
        [line] = [each for each in text.decode().splitlines() if each.startswith("styx_gateway_events_sent_total ")]
        return int(float(line.split()[1]))

    assert (await cluster.call("order", "b", "pay", 1)) == 1, "others are served meanwhile"
    before = await sent()
    writer.close()
    assert before < 40, "what the connection takes, and no more"
    _, _, body = await _get(f"{server.url}/v1/events/noted?follow=false")
    assert len([each for each in BlockReader().take(body) if each.data]) == 60

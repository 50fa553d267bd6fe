"""The gateway below a path of another application, and `styx.asgi`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

import styx
from styx import ConfigurationError
from styx.client.embedded import EmbeddedClient
from styx.gateway.head import path, raw_path
from tests.embedded.ledger_app import app
from tests.gateway.asgi import exchange

pytestmark = pytest.mark.anyio

HOST = {"host": "shop.example"}
JSON = {**HOST, "content-type": "application/json"}


@pytest.fixture
async def client() -> AsyncIterator[EmbeddedClient]:
    async with styx.embedded(app) as client:
        yield client


@pytest.mark.parametrize("prefix", ["/bank", "/a/b", "/my bank", "/v1", "/é"])
async def test_everything_is_below_the_prefix(client: EmbeddedClient, prefix: str) -> None:
    web = Starlette(routes=[Mount(prefix, app=styx.asgi(client))])
    from urllib.parse import quote

    sent = quote(prefix)

    async def ask(method: str, path: str) -> Any:
        return await exchange(_decoding(web), method, sent + path, [b"[]"], JSON)

    assert (await ask("POST", "/v1/ledger/a%2Fb/add")).json["result"] == 1
    assert (await ask("GET", "/v1/ledger/a%2Fb")).json["result"] == 1
    assert (await ask("GET", "/v1/ledger/nobody")).code == "unknown_entity"
    assert (await ask("POST", "/v1/ledger/a/nothing")).code == "unknown_function"
    assert (await ask("POST", "/v1/ledger")).status in (200, 422, 400)
    for page in ("/healthz", "/readyz", "/docs", "/metrics"):
        assert (await ask("GET", page)).status == 200, page
    document = (await ask("GET", "/openapi.json")).json
    assert document["servers"] == [{"url": sent}]
    assert "/v1/ledger/{key}/add" in document["paths"]
    outside = await exchange(_decoding(web), "POST", "/v1/ledger/a/add", [b"[]"], JSON)
    assert outside.status == 404 or prefix == "/v1"


def _decoding(application: Any) -> Any:
    """As servers do: `path` is decoded, `raw_path` as it was sent."""
    from urllib.parse import unquote

    async def call(scope: Any, receive: Any, send: Any) -> None:
        await application({**scope, "path": unquote(scope["path"])}, receive, send)

    return call


@pytest.mark.parametrize(
    ("scope", "below", "raw"),
    [
        ({"path": "/v1/a/b c", "raw_path": b"/v1/a/b%20c"}, "/v1/a/b c", "/v1/a/b%20c"),
        ({"path": "/x/v1/a/b/c", "root_path": "/x", "raw_path": b"/x/v1/a/b%2Fc"}, "/v1/a/b/c", "/v1/a/b%2Fc"),
        ({"path": "/v1/a/b/c", "root_path": "/x", "raw_path": b"/v1/a/b%2Fc"}, "/v1/a/b/c", "/v1/a/b%2Fc"),
        ({"path": "/x/v1/a/b/c", "root_path": "/x", "raw_path": b"/v1/a/b%2Fc"}, "/v1/a/b/c", "/v1/a/b%2Fc"),
        ({"path": "/x y/v1/a", "root_path": "/x y", "raw_path": b"/x%20y/v1/a"}, "/v1/a", "/v1/a"),
        ({"path": "/x/v1/a b", "root_path": "/x"}, "/v1/a b", "/v1/a%20b"),
        ({"path": "/xv1/a", "root_path": "/x", "raw_path": b"/xv1/a"}, "/xv1/a", "/xv1/a"),
        ({"path": "/x", "root_path": "/x", "raw_path": b"/x"}, "/x", "/x"),
        ({"path": "/x/v1/a", "root_path": "/x", "raw_path": b"/other/%00"}, "/v1/a", "/v1/a"),
    ],
)
def test_the_path_below_the_prefix(scope: dict[str, Any], below: str, raw: str) -> None:
    assert (path(scope), raw_path(scope)) == (below, raw)


async def test_a_client_that_is_opened_later_and_closed_before() -> None:
    client = styx.embedded(app)
    web = styx.asgi(client)
    assert (await exchange(web, "GET", "/readyz", headers=HOST)).status == 503
    refused = await exchange(web, "POST", "/v1/ledger/a/add", [b"[]"], JSON)
    assert (refused.status, refused.code) == (503, "unavailable")
    async with client:
        assert (await exchange(web, "GET", "/readyz", headers=HOST)).status == 200
        assert (await exchange(web, "POST", "/v1/ledger/a/add", [b"[]"], JSON)).status == 200
    assert (await exchange(web, "POST", "/v1/ledger/a/add", [b"[]"], JSON)).status == 503


async def test_pages_of_others_are_refused(client: EmbeddedClient) -> None:
    for headers in (
        {**JSON, "origin": "https://evil.example"},
        {**HOST, "content-type": "text/plain"},
        {**JSON, "sec-fetch-site": "cross-site"},
    ):
        answer = await exchange(styx.asgi(client), "POST", "/v1/ledger/a/add", [b"[]"], headers)
        assert answer.status in (403, 415)
    own = {**JSON, "origin": "http://shop.example"}
    assert (await exchange(styx.asgi(client), "POST", "/v1/ledger/a/add", [b"[]"], own)).status == 200
    allowing = styx.asgi(client, allowed_hosts=["other.example"], allowed_origins=["https://friend.example"])
    assert (await exchange(allowing, "POST", "/v1/ledger/a/add", [b"[]"], JSON)).status >= 400
    friend = {"host": "other.example", "content-type": "application/json", "origin": "https://friend.example"}
    assert (await exchange(allowing, "POST", "/v1/ledger/a/add", [b"[]"], friend)).status == 200
    assert client.entity("ledger", "a") == 2


async def test_another_event_loop_is_refused_before_anything_is_sent(client: EmbeddedClient) -> None:
    def elsewhere() -> None:
        asyncio.run(exchange(styx.asgi(client), "POST", "/v1/ledger/a/add", [b"[]"], JSON))

    with pytest.raises(ConfigurationError, match="nothing was sent"):
        await asyncio.to_thread(elsewhere)
    assert client.entity("ledger", "a") is None


@pytest.mark.parametrize("wrong", [None, app, styx.embedded_sync(app), styx.connect("http://127.0.0.1:1")])
def test_what_cannot_be_mounted(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"styx\.asgi takes the client of styx\.embedded"):
        styx.asgi(wrong)


async def test_a_client_that_somebody_else_has_opened_is_left_open(client: EmbeddedClient) -> None:
    web = styx.asgi(client)
    told: asyncio.Queue[Any] = asyncio.Queue()
    said: asyncio.Queue[Any] = asyncio.Queue()
    told.put_nowait({"type": "lifespan.startup"})
    told.put_nowait({"type": "lifespan.shutdown"})
    await web({"type": "lifespan"}, told.get, said.put)
    assert [said.get_nowait()["type"] for _ in range(2)] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert await client.call("ledger", "a", "add") == 1


async def test_served_by_itself_it_opens_and_closes_the_client(tmp_path: Path) -> None:
    for count in (1, 2):
        web = styx.asgi(styx.embedded(app, tmp_path))
        told: asyncio.Queue[Any] = asyncio.Queue()
        said: asyncio.Queue[Any] = asyncio.Queue()
        living = asyncio.ensure_future(web({"type": "lifespan"}, told.get, said.put))
        told.put_nowait({"type": "lifespan.startup"})
        assert (await said.get())["type"] == "lifespan.startup.complete"
        assert (await exchange(web, "POST", "/v1/ledger/a/add", [b"[]"], JSON)).json["result"] == count
        second = asyncio.Queue[Any]()
        another = styx.asgi(styx.embedded(app, tmp_path))
        told_too = asyncio.Queue[Any]()
        told_too.put_nowait({"type": "lifespan.startup"})
        await another({"type": "lifespan"}, told_too.get, second.put)
        failed = second.get_nowait()
        assert failed["type"] == "lifespan.startup.failed"
        assert "DataDirectoryInUse" in failed["message"]
        told.put_nowait({"type": "lifespan.shutdown"})
        await living
        assert said.get_nowait()["type"] == "lifespan.shutdown.complete"

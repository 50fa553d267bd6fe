"""The door in front of a gateway: refusals and CORS as they are answered, on every route and on a real socket."""

import asyncio

import httpx
import pytest

from styx.gateway.app import Gateway
from styx.gateway.front import Entrance, Front
from styx.http.asgi import Application
from styx.testing.patience import PATIENCE_SECONDS
from tests.gateway.asgi import Answer, exchange
from tests.gateway.fake_engine import FakeEngine
from tests.gateway.running import running

pytestmark = pytest.mark.anyio

SHOP = "https://shop.example.com"
OWN = {"host": "127.0.0.1:8080"}
ROUTES = [
    *(("POST", "/v1/shelf/a/key"), ("POST", "/v1/shelf"), ("GET", "/v1/shelf/a"), ("GET", "/v1/shelf/a/key")),
    *(("GET", "/metrics"), ("GET", "/docs"), ("GET", "/openapi.json"), ("GET", "/"), ("GET", "/nothing")),
    *(("OPTIONS", "/v1/shelf/a/key"), ("DELETE", "/v1/shelf/a"), ("POST", "/healthz")),
]


def door(engine: FakeEngine, allowed_origins: tuple[str, ...] = ()) -> Application:
    front = Front(allowed_origins=allowed_origins)
    return Entrance(Gateway(engine), front, front.rules("127.0.0.1", "127.0.0.1")).application


async def ask(application: Application, headers: dict[str, str], method: str = "POST") -> Answer:
    return await exchange(application, method, "/v1/shelf/a/key", [b"[]"], OWN | headers)


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "evil.example"}, "forbidden_host"),
        (OWN | {"origin": "http://localhost:18098"}, "forbidden_origin"),
        (OWN | {"sec-fetch-site": "cross-site"}, "forbidden_origin"),
    ],
)
async def test_every_route_is_behind_it(
    engine: FakeEngine, method: str, path: str, headers: dict[str, str], code: str
) -> None:
    answer = await exchange(door(engine), method, path, [b"[]"], headers)
    assert (answer.status, answer.code) == (403, code)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["connection"] == "close"
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert engine.requests == []


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
async def test_forms_and_text_are_refused(engine: FakeEngine, kind: str) -> None:
    answer = await ask(door(engine), {"content-type": kind})
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert "application/json" in answer.json["error"]["message"]
    assert engine.requests == []


async def test_own_pages_and_programs(engine: FakeEngine) -> None:
    application = door(engine)
    for headers in ({}, {"origin": "http://127.0.0.1:8080"}):
        answer = await ask(application, {"content-type": "application/json"} | headers)
        assert answer.status == 200
        assert "access-control-allow-origin" not in answer.headers
        assert "vary" not in answer.headers


async def test_health_by_any_name(engine: FakeEngine) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await exchange(door(engine), "GET", path, headers={"host": "10.1.2.3:8080"})).status == 200


async def test_an_allowed_origin(engine: FakeEngine) -> None:
    application = door(engine, allowed_origins=(SHOP,))
    asked = await ask(
        application,
        {"origin": SHOP, "access-control-request-method": "POST", "access-control-request-headers": "content-type"},
        "OPTIONS",
    )
    assert asked.status == 204
    assert asked.headers["access-control-allow-origin"] == SHOP
    assert asked.headers["access-control-allow-methods"] == "GET, POST"
    assert {"content-type", "authorization"} <= set(asked.headers["access-control-allow-headers"].split(", "))
    assert "origin" in asked.headers["vary"]
    assert engine.requests == []
    answer = await ask(application, {"origin": SHOP, "content-type": "application/json"})
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == SHOP
    assert answer.headers["vary"] == "origin"
    assert "access-control-allow-credentials" not in answer.headers, "no cookie and no password of a browser's"
    refused = await ask(application, {"origin": SHOP, "content-type": "text/plain"})
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (415, SHOP), "its page may read why"


async def test_with_allowed_origins_others_are_still_refused(engine: FakeEngine) -> None:
    application = door(engine, allowed_origins=(SHOP,))
    for method in ("OPTIONS", "POST", "GET"):
        asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
        answer = await ask(application, asked, method)
        assert (answer.status, answer.code) == (403, "forbidden_origin")
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["vary"] == "origin"
    assert (await ask(application, {"content-type": "application/json"})).headers["vary"] == "origin"


async def test_refusals_are_counted(engine: FakeEngine) -> None:
    application = door(engine)
    for _ in range(3):
        await ask(application, {"origin": "null"})
    text = (await exchange(application, "GET", "/metrics", headers=OWN)).body.decode()
    assert 'styx_gateway_refused_total{code="forbidden_origin"} 3.0' in text


async def _raw(url: str, request: bytes) -> bytes:
    host, _, port = url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(request)
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_on_the_wire(engine: FakeEngine) -> None:
    async with running(engine, front=Front(allowed_hosts=("shop.example.com",))) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_SECONDS) as client:
            assert (await client.post("/v1/shelf/a/key", json=[])).status_code == 200
            answer = await client.post("/v1/shelf/a/key", json=[], headers={"host": "evil.example"})
            assert answer.json()["error"]["code"] == "forbidden_host"
            answer = await client.post("/v1/shelf/a/key", content=b"x" * 3_000_000, headers={"origin": "null"})
            assert answer.json()["error"]["code"] == "forbidden_origin"
            assert (await client.get("/docs", headers={"host": "SHOP.example.com."})).status_code == 200
        rest = b"Content-Length: 2\r\nConnection: close\r\n\r\n[]"
        twice = b"Host: 127.0.0.1\r\nHost: evil.example\r\n"
        for head, status in (
            (b"POST /v1/shelf/a/key HTTP/1.0\r\n", b"200"),
            (b"POST /v1/shelf/a/key HTTP/1.1\r\n", b"400"),
            (b"POST /v1/shelf/a/key HTTP/1.1\r\n" + twice, b"400"),
            (b"POST http://evil.example/v1/shelf/a/key HTTP/1.1\r\nHost: evil.example\r\n", b"403"),
        ):
            assert (await _raw(server.url, head + rest)).split(b" ")[1] == status, head
        waiting = b"POST /v1/shelf/a/key HTTP/1.1\r\nHost: x.y\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        assert (await _raw(server.url, waiting)).startswith(b"HTTP/1.1 403 "), "its body is not asked for"

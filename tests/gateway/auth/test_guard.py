"""The guard before a gateway: who is let in, what others are told, and files that change meanwhile."""

import asyncio
import base64
import contextlib
import json
import logging
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from styx import ConfigurationError
from styx.gateway.app import Gateway
from styx.gateway.auth import api_keys
from styx.gateway.auth.access import Access, AccessOptions
from styx.gateway.auth.api_keys import ApiKey, new_key, utc_now
from styx.gateway.auth.signing_keys import RETRY_SECONDS, FetchTimes, check_url, fetch, read_file
from styx.gateway.front import Entrance, Front
from tests.gateway.asgi import Answer, exchange
from tests.gateway.auth.signers import AUDIENCE, ISSUER, Signer, jwks
from tests.gateway.fake_engine import FakeEngine
from tests.local_http import Handler, serving

pytestmark = pytest.mark.anyio

OWN = {"host": "127.0.0.1"}
RSA = Signer("rsa-1", "RS256")


class Door:
    """A gateway with API keys; `shop` is one of them."""

    def __init__(self, folder: Path, trusted_proxies: tuple[str, ...] = (), **options: Any) -> None:
        self.keys = folder / "keys.json"
        self.shop = self.add("shop")
        self.engine = FakeEngine()
        self.gateway = Gateway(self.engine)
        front = Front(
            access=AccessOptions(api_keys=self.keys, **options),
            allowed_origins=("https://shop.example.com",),
            trusted_proxies=trusted_proxies,
        )
        self.entrance = Entrance(self.gateway, front, front.rules("127.0.0.1", "127.0.0.1"))

    def add(self, name: str, **limits: Any) -> str:
        text, entry = new_key(name, utc_now())
        changed = ApiKey(entry.name, entry.id, entry.sha256, **limits)
        api_keys.change_file(self.keys, lambda keys: [*keys, changed])
        return text

    def poll(self) -> None:
        access = self.entrance._access
        assert access is not None
        access.poll()

    async def ask(self, path: str, credential: str | None = None, method: str = "POST", **headers: str) -> Answer:
        sent = OWN | {name.replace("_", "-"): value for name, value in headers.items()}
        if credential is not None:
            sent["authorization"] = f"Bearer {credential}"
        return await exchange(self.entrance.application, method, path, [b""], sent)


@pytest.fixture
def door(tmp_path: Path) -> Door:
    return Door(tmp_path)


EVERYTHING = [
    *(("POST", "/v1/shelf/a/key"), ("POST", "/v1/shelf"), ("GET", "/v1/shelf/a"), ("POST", "/v1/none/a/key")),
    *(("POST", "/v1/shelf/a/none"), ("POST", "/v1/%ff/a/b"), ("GET", "/metrics"), ("GET", "/docs"), ("GET", "/")),
    *(("GET", "/openapi.json"), ("GET", "/none"), ("DELETE", "/v1/shelf/a"), ("POST", "/healthz"), ("OPTIONS", "/")),
    *(("GET", "//healthz"), ("GET", "/healthz/"), ("GET", "/%2fhealthz"), ("GET", "/metrics/../healthz")),
]


@pytest.mark.parametrize(("method", "path"), EVERYTHING)
async def test_without_a_credential_all_is_the_same(door: Door, method: str, path: str) -> None:
    answer = await door.ask(path, method=method)
    assert (answer.status, answer.code) == (401, "unauthenticated")
    assert answer.body == (await door.ask("/v1/shelf/a/key")).body, "it tells nothing of what there is"
    assert answer.headers["www-authenticate"] == 'Bearer realm="styx"'
    assert door.engine.requests == []


async def test_health_is_for_everybody(door: Door) -> None:
    for path in ("/healthz", "/readyz"):
        assert (await door.ask(path, method="GET")).status == 200


@pytest.mark.parametrize(
    "header",
    [
        *("", "Bearer", "Bearer ", "Bearer x", "Basic", "Basic !", "Basic eDp4", "Digest x", "x", "Bearer styx_"),
        *("Basic " + base64.b64encode(b"\xff:\xff").decode(), "bearer\tx", "Bearer a b", "Bearer " + "x" * 50_000),
    ],
)
async def test_what_is_no_credential(door: Door, header: str) -> None:
    answer = await door.ask("/v1/shelf/a/key", authorization=header)
    assert answer.status == 401
    for part in header.split()[1:]:
        assert len(part) < 2 or part.encode() not in answer.body, "nothing of it comes back"


async def test_a_key_opens(door: Door) -> None:
    assert (await door.ask("/v1/shelf/a/key", door.shop)).status == 200
    assert (await door.ask("/v1/shelf/a/none", door.shop)).status == 404
    for path in ("/metrics", "/docs", "/openapi.json"):
        assert (await door.ask(path, door.shop, "GET")).status == 200
    basic = "basic " + base64.b64encode(f"anybody:{door.shop}".encode()).decode()
    assert (await door.ask("/docs", method="GET", authorization=basic)).status == 200
    assert (await door.ask("/v1/shelf/a/key", authorization=f"BEARER  {door.shop} ")).status == 200


async def test_two_headers_are_none(door: Door) -> None:
    scope_headers = [(b"host", b"127.0.0.1")] + [(b"authorization", b"Bearer " + door.shop.encode())] * 2
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/docs", "raw_path": b"/docs", "headers": scope_headers}
    await door.entrance.application(scope, receive, send)
    assert sent[0]["status"] == 401


async def test_a_browser_asks_its_person_at_a_page_only(door: Door) -> None:
    page = await exchange(door.entrance.application, "GET", "/docs", headers=OWN | {"accept": "text/html"})
    assert page.headers["www-authenticate"].startswith("Basic"), "the last of two"
    other = await exchange(door.entrance.application, "POST", "/v1/shelf/a/key", [b""], OWN | {"accept": "text/html"})
    assert other.headers["www-authenticate"] == 'Bearer realm="styx"'


async def test_keys_are_exchanged_without_a_restart(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    new = door.add("shop")
    assert (await door.ask("/docs", new, "GET")).status == 401
    door.poll()
    assert (await door.ask("/docs", new, "GET")).status == (await door.ask("/docs", door.shop, "GET")).status == 200
    api_keys.change_file(door.keys, lambda keys: keys[1:])
    door.poll()
    assert (await door.ask("/docs", door.shop, "GET")).status == 401
    door.keys.write_bytes(b'{"keys": [')
    door.poll()
    assert "stays in use" in caplog.text
    assert (await door.ask("/docs", new, "GET")).status == 200, "a damaged file locks nobody out, and lets nobody in"
    door.keys.unlink()
    door.poll()
    assert (await door.ask("/docs", new, "GET")).status == 200


async def test_rules(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[allow]]\nkeys = ["shop"]\ncall = ["shelf.key"]\n')
    door = Door(tmp_path, policy=rules)
    assert (await door.ask("/v1/shelf/a/key", door.shop)).status == 200
    for method, path in (("POST", "/v1/shelf/a/add"), ("POST", "/v1/none/a/b"), ("GET", "/metrics"), ("GET", "/none")):
        answer = await door.ask(path, door.shop, method)
        assert (answer.status, answer.code) == (403, "forbidden"), path
        assert "shop may not" in answer.json["error"]["message"]
    rules.write_text('[[allow]]\nsee = ["metrics"]\n')
    door.poll()
    assert (await door.ask("/v1/shelf/a/key", door.shop)).status == 403
    assert (await door.ask("/metrics", door.shop, "GET")).status == 200


async def test_limits(tmp_path: Path) -> None:
    door = Door(tmp_path, rate=0.001)
    assert (await door.ask("/v1/shelf/a/key", door.shop)).status == 200
    answer = await door.ask("/v1/shelf/a/key", door.shop)
    assert (answer.status, answer.code) == (429, "rate_limited")
    assert 990 <= int(answer.headers["retry-after"]) <= 1000
    other = door.add("other", in_flight=1, rate=1000.0)
    door.poll()
    door.engine.reset()
    door.engine.hold()
    first = asyncio.create_task(door.ask("/v1/shelf/a/key", other))
    await door.engine.arrived()
    assert (await door.ask("/v1/shelf/a/key", other)).status == 429
    door.engine.release()
    assert (await first).status == 200
    assert (await door.ask("/v1/shelf/a/key", other)).status == 200


async def test_each_refusal_is_told_and_no_credential(door: Door, caplog: pytest.LogCaptureFixture) -> None:
    wrong = door.shop[:-1] + "x"
    await door.ask("/v1/shelf/secret-entity/key?token=in-the-query", wrong)
    await door.ask("/docs", method="GET", origin="https://evil.example")
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "styx.audit"]
    assert [(line["status"], line["code"], line["action"]) for line in lines] == [
        (401, "unauthenticated", "call shelf.key"),
        (403, "forbidden_origin", "see docs"),
    ]
    for word in (wrong, door.shop, "in-the-query", "secret-entity"):
        assert word not in caplog.text
    metrics = (await door.ask("/metrics", door.shop, "GET")).body.decode()
    assert 'styx_gateway_refused_total{code="unauthenticated"} 1.0' in metrics


async def test_a_preflight_needs_no_credential(door: Door) -> None:
    """A browser sends none with it. The page may read why its request was refused."""
    shop = {"origin": "https://shop.example.com"}
    asked = OWN | shop | {"access-control-request-method": "POST"}
    assert (await exchange(door.entrance.application, "OPTIONS", "/v1/shelf/a/key", headers=asked)).status == 204
    refused = await exchange(door.entrance.application, "POST", "/v1/shelf/a/key", headers=OWN | shop)
    assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, shop["origin"])


# Tokens ----------------------------------------------------------------------------------------------------


def tokens(folder: Path, source: str) -> Door:
    return Door(folder, signing_keys=source, issuer=ISSUER, audiences=(AUDIENCE,))


async def test_tokens_beside_keys(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps(jwks(RSA)))
    door = tokens(tmp_path, str(file))
    assert (await door.ask("/v1/shelf/a/key", RSA.token())).status == 200
    assert (await door.ask("/v1/shelf/a/key", door.shop)).status == 200
    answer = await door.ask("/v1/shelf/a/key", RSA.token(exp=time.time() - 600))
    assert (answer.status, answer.headers["www-authenticate"]) == (401, 'Bearer realm="styx", error="invalid_token"')
    new = Signer("rsa-2", "RS256")
    file.write_text(json.dumps(jwks(new)) + " ")
    door.poll()
    assert (await door.ask("/v1/shelf/a/key", RSA.token())).status == 401
    assert (await door.ask("/v1/shelf/a/key", new.token())).status == 200


class KeyServer:
    """Serves what `answer` is: (status, body)."""

    def __init__(self) -> None:
        self.answer = (200, b"")
        self.asked = 0
        server = self

        class Keys(Handler):
            def do_GET(self) -> None:
                server.asked += 1
                self.say(*server.answer, location="/elsewhere")

        self.handler = Keys
        self.url = ""

    def serve(self, *signers: Signer) -> None:
        self.answer = (200, json.dumps(jwks(*signers)).encode())


@pytest.fixture
def key_server() -> Iterator[KeyServer]:
    server = KeyServer()
    with serving(server.handler) as address:
        server.url = f"http://{address}/jwks?a=b"
        yield server


async def test_signing_keys_from_an_address(
    tmp_path: Path, key_server: KeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    door = tokens(tmp_path, key_server.url)
    key_server.answer = (503, b"")
    answer = await door.ask("/v1/shelf/a/key", RSA.token())
    assert (answer.status, answer.code) == (503, "unavailable"), "it cannot tell yet"
    access = door.entrance._access
    assert access is not None
    key_server.serve(RSA)
    assert (await door.ask("/v1/shelf/a/key", RSA.token())).status == 503, "it is not asked again at once"
    access._times.asked(time.monotonic() - RETRY_SECONDS)
    assert (await door.ask("/v1/shelf/a/key", RSA.token())).status == 200
    new = Signer("rsa-2", "RS256")
    key_server.serve(RSA, new)
    asked = key_server.asked
    for _ in range(20):
        assert (await door.ask("/v1/shelf/a/key", new.token())).status == 401
    assert key_server.asked == asked, "tokens of unknown keys make it ask at most each ten seconds"
    access._times.asked(time.monotonic() - RETRY_SECONDS)
    answers = await asyncio.gather(*(door.ask("/v1/shelf/a/key", new.token()) for _ in range(20)))
    assert {answer.status for answer in answers} == {200}
    assert key_server.asked == asked + 1, "all wait for the same"
    key_server.answer = (200, b'{"keys": []}')
    access._times.asked(time.monotonic() - RETRY_SECONDS)
    await access._refetch()
    assert (await door.ask("/v1/shelf/a/key", RSA.token())).status == 200, "what it has stays in use"


def test_when_signing_keys_are_fetched() -> None:
    times = FetchTimes()
    assert times.is_due(1000.0, wanted=False)
    assert times.is_stale(1000.0)
    times.asked(1000.0)
    assert not times.is_due(1009.0, wanted=True)
    assert times.is_due(1010.0, wanted=False)
    times.had(1010.0)
    assert not times.is_due(1100.0, wanted=False)
    assert times.is_due(1100.0, wanted=True)
    assert times.is_due(1311.0, wanted=False)
    assert not times.is_stale(1010.0 + 24 * 3600)
    assert times.is_stale(1011.0 + 24 * 3600)


def test_addresses_of_signing_keys(key_server: KeyServer) -> None:
    for url in ("http://login.example.com/jwks", "ftp://a", "https://", "file:///etc/passwd"):
        with pytest.raises(ConfigurationError, match="from https:// only"):
            check_url(url)
    check_url("https://login.example.com/jwks")
    for answer in ((302, b""), (200, b"x"), (200, b"{}"), (200, b" " * 2_000_000)):
        key_server.answer = answer
        with pytest.raises(ConfigurationError):
            fetch(key_server.url)


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    file = tmp_path / "x"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"signing_keys": "x"}, "--jwt-issuer"),
        ({"signing_keys": "x", "issuer": "a"}, "--jwt-audience"),
        ({"issuer": "a"}, "nothing to verify tokens with"),
        ({"policy": file}, "rules and limits need authenticated clients"),
        ({"rate": 1.0}, "rules and limits"),
        ({"api_keys": file, "rate": 0.0}, "--rate-limit"),
        ({"api_keys": file, "in_flight": 0}, "--in-flight-limit"),
    ]
    for options, words in wrong:
        with pytest.raises(ConfigurationError, match=words):
            AccessOptions(**options)
    unread: list[tuple[dict[str, Any], str]] = [
        ({"api_keys": file}, "cannot be read"),
        ({"signing_keys": str(file), "issuer": "a", "audiences": ("b",)}, "cannot be read"),
        ({"signing_keys": "http://a/b", "issuer": "a", "audiences": ("b",)}, "https"),
        ({"signing_keys": str(file), "issuer": "a", "audiences": ("b",), "algorithms": ("none",)}, "no algorithm"),
    ]
    for options, words in unread:
        with pytest.raises(ConfigurationError, match=words):
            Access(AccessOptions(**options))


async def test_looking_at_files_goes_on(
    door: Door, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While it is served the files are looked at, and one bad look is not the last."""
    looks, enough = 0, asyncio.Event()

    def poll() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("odd")
        enough.set()

    monkeypatch.setattr("styx.gateway.front.POLL_SECONDS", 0)
    monkeypatch.setattr(door.entrance._access, "poll", poll)
    with caplog.at_level(logging.ERROR):
        async with door.entrance.kept_fresh():
            await enough.wait()
    assert "a look at the files" in caplog.text


@pytest.mark.parametrize(
    "body", [b"\xff", b'{"keys": "\xff"}', b"[" * 100_000, b'{"keys": ' + b"[" * 100_000, b'{"keys": [{"kty": []}]}']
)
async def test_what_is_no_jwk_set(tmp_path: Path, key_server: KeyServer, body: bytes) -> None:
    door = tokens(tmp_path, key_server.url)
    key_server.answer = (200, body)
    assert (await door.ask("/v1/shelf/a/key", RSA.token())).status == 503
    file = tmp_path / "jwks.json"
    file.write_bytes(body if body.startswith(b"{") else b"{" + body)
    with pytest.raises(ConfigurationError, match=re.escape(str(file))):
        read_file(file)


@pytest.mark.parametrize("url", ["https://a:b/", "https://[::1", "https://a:99999/", "https://a:0/", "https://u:pw@a/"])
def test_no_addresses(url: str) -> None:
    with pytest.raises(ConfigurationError, match="is not valid, or holds a password") as caught:
        check_url(url)
    assert "pw" not in str(caught.value)


def test_a_server_that_dribbles_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, and the answer never ends."""
    monkeypatch.setattr("styx.gateway.auth.signing_keys.FETCH_SECONDS_MAX", 0.2)
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def dribble() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
                while not over.wait(0.01):
                    connection.sendall(b"x")

        thread = Thread(target=dribble)
        thread.start()
        with pytest.raises((OSError, ConfigurationError)):
            fetch(f"http://127.0.0.1:{listener.getsockname()[1]}/")
        over.set()
        thread.join()


async def test_closing_waits_for_no_server(
    tmp_path: Path, key_server: KeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    access = tokens(tmp_path, key_server.url).entrance._access
    assert access is not None
    begun, over = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()

    def slow(_: str) -> list[Any]:
        loop.call_soon_threadsafe(begun.set)
        over.wait()
        return []

    monkeypatch.setattr("styx.gateway.auth.signing_keys.fetch", slow)
    access.poll()
    await begun.wait()
    await access.close()
    over.set()


async def test_a_fault_tells_nothing(
    door: Door, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("styx.gateway.auth.guard.credential_in", broken)
    answer = await door.ask("/v1/shelf/a/key", door.shop)
    assert (answer.status, answer.code) == (500, "internal")
    assert b"detail" not in answer.body
    assert "detail" not in caplog.text


async def test_a_refusal_says_of_what_kind_who_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, rules = tmp_path / "jwks.json", tmp_path / "rules.toml"
    file.write_text(json.dumps(jwks(RSA)))
    rules.write_text("")
    door = Door(tmp_path, policy=rules, signing_keys=str(file), issuer=ISSUER, audiences=(AUDIENCE,))
    await door.ask("/v1/shelf/a/key", door.shop)
    await door.ask("/v1/shelf/a/key", RSA.token(sub="sh\u00f6p"))
    texts = [record.getMessage() for record in caplog.records if record.name == "styx.audit"]
    assert all(text.isascii() for text in texts)
    found = [json.loads(text) for text in texts]
    assert [(line["who"], line["kind"]) for line in found] == [("shop", "api_key"), ("sh\u00f6p", "token")]

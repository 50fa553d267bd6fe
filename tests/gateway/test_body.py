"""The size limit: enforced while the body arrives, and answered so that the sender can read the answer."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from styx import Limits, RequestRejected
from styx.gateway import body
from styx.gateway.app import Gateway
from styx.gateway.body import IncomingBody
from tests.gateway.asgi import exchange, post
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio

PATH = "/v1/shelf/a/echo"


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(Limits(request_bytes_max=100))


async def test_at_the_limit_and_over_it(gateway: Gateway) -> None:
    assert (await post(gateway, PATH, b'["' + b"x" * 96 + b'"]')).status == 200
    answer = await post(gateway, PATH, b'["' + b"x" * 97 + b'"]')
    assert (answer.status, answer.code) == (413, "too_large")
    assert "100 bytes" in answer.json["error"]["message"]


async def test_body_in_parts(gateway: Gateway) -> None:
    answer = await exchange(gateway, "POST", PATH, [b"[", b"", b"1", b"]"])
    assert answer.json["result"] == 1
    assert (await exchange(gateway, "POST", PATH, [b"[", b" " * 60, b" " * 60, b"]"])).status == 413


@pytest.mark.parametrize("length", ["101", "1" + "0" * 30, "9" * 5000])
async def test_announced_size_is_refused_unread(gateway: Gateway, length: str) -> None:
    answer = await exchange(gateway, "POST", PATH, [b"["] * 9, {"content-length": length, "expect": "100-continue"})
    assert (answer.status, answer.code, answer.parts_read) == (413, "too_large", 0)


@pytest.mark.parametrize("length", ["x", "-1", "", "1.0", "²"])
async def test_bad_content_length(gateway: Gateway, length: str) -> None:
    assert (await exchange(gateway, "POST", PATH, [b"[1]"], {"content-length": length})).status == 400


async def test_an_oversized_body_is_read_no_further_than_the_linger_limit(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "LINGER_BYTES_MAX", 1000)
    answer = await exchange(gateway, "POST", PATH, [b" " * 101] * 100)
    assert answer.status == 413
    assert answer.parts_read <= 11


async def test_a_refused_request_is_read_to_its_end_before_it_is_answered(gateway: Gateway) -> None:
    answer = await exchange(gateway, "POST", "/v1/none/a/b", [b" " * 10] * 5)
    assert (answer.status, answer.parts_read) == (404, 5)


async def test_a_body_that_stops_arriving(
    gateway: Gateway, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body, "LINGER_SECONDS_MAX", 0.001)
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    path = {"method": "POST", "path": PATH, "raw_path": PATH.encode()}
    await gateway({"type": "http", **path, "headers": [(b"styx-timeout", b"0.001")]}, receive, send)
    assert sent[0]["status"] == 400
    assert b"nothing was run" in sent[1]["body"]
    assert engine.requests == []


async def test_arguments_may_not_grow_over_the_limit_by_encoding() -> None:
    gateway = Gateway(FakeEngine(Limits(value_bytes_max=100)))
    assert (await post(gateway, PATH, b"[[" + b"0.5," * 9 + b"0.5]]")).status == 200
    assert (await post(gateway, PATH, b"[[" + b"0.5," * 19 + b"0.5]]")).status == 413


async def test_reading_stops_as_soon_as_it_is_too_much() -> None:
    parts = iter(range(1000))

    async def receive() -> MutableMapping[str, Any]:
        next(parts)
        return {"type": "http.request", "body": b"x" * 40, "more_body": True}

    with pytest.raises(RequestRejected):
        await IncomingBody(receive).read(100)
    assert next(parts) == 3

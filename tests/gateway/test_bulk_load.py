"""`POST /v1/{operator}`: lines of JSON or a msgpack array become loaded entities, and an answer that says how many."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

import styx
from styx import App, Limits, LoadFailed, Operator, OutcomeUnknown
from styx.client.embedded import EmbeddedClient
from styx.gateway.app import Gateway
from styx.gateway.status import load_failed
from tests.gateway.asgi import Answer, exchange, post
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct):
    price: Decimal
    since: datetime
    raw: bytes = b""


plain = Operator("plain")
item = Operator("item", key_type=(int, str), state_type=Item)
app = App("shop", [plain, item])
LIMITS = Limits(request_bytes_max=20_000, value_bytes_max=10_000)


@pytest.fixture
async def client() -> AsyncIterator[EmbeddedClient]:
    async with styx.embedded(app, limits=LIMITS) as client:
        yield client


@pytest.fixture
def gateway(client: EmbeddedClient) -> Gateway:
    return Gateway(client.engine)


def lines(*pairs: Any) -> bytes:
    return b"\n".join(msgspec.json.encode(pair) for pair in pairs)


async def send_msgpack(gateway: Gateway, pairs: Any, query: str = "", **headers: str) -> Answer:
    body = msgspec.msgpack.encode(pairs)
    return await post(gateway, f"/v1/plain{query}", body, Content_Type="application/msgpack", **headers)


async def test_lines_of_json(gateway: Gateway, client: EmbeddedClient) -> None:
    answer = await post(gateway, "/v1/plain", lines(*[[f"k{n}", {"n": n}] for n in range(1500)]) + b"\n\r\n")
    assert (answer.status, answer.json) == (200, {"loaded": 1500})
    assert client.state() == {("plain", f"k{n}"): {"n": n} for n in range(1500)}


async def test_the_state_type_says_what_a_string_stands_for(gateway: Gateway, client: EmbeddedClient) -> None:
    body = lines([[1, "a"], {"price": "1.50", "since": "2026-01-02T00:00:00Z", "raw": "/w=="}])
    assert (await post(gateway, "/v1/item", body)).json == {"loaded": 1}
    assert client.entity(item, (1, "a")) == Item(Decimal("1.50"), datetime(2026, 1, 2, tzinfo=UTC), b"\xff")


async def test_a_body_in_any_pieces(gateway: Gateway, client: EmbeddedClient) -> None:
    body = lines(*[[f"k{n}", n] for n in range(50)])
    for size in (1, 2, 7, 1000):
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        assert (await exchange(gateway, "POST", "/v1/plain?replace=true", parts)).json == {"loaded": 50}
    assert len(client.state()) == 50


async def test_a_body_may_be_longer_than_a_request(gateway: Gateway) -> None:
    body = lines(*[[f"k{n}", "x" * 1000] for n in range(100)])
    answer = await post(gateway, "/v1/plain", body, Content_Length=str(len(body)))
    assert answer.json == {"loaded": 100}


async def test_msgpack(gateway: Gateway, client: EmbeddedClient) -> None:
    assert (await send_msgpack(gateway, [["a", {1: b"\xff"}], ["b", None]])).json == {"loaded": 2}
    assert client.state() == {("plain", "a"): {1: b"\xff"}, ("plain", "b"): None}


async def test_nothing_to_load(gateway: Gateway) -> None:
    assert (await post(gateway, "/v1/plain", b"")).json == {"loaded": 0}
    assert (await send_msgpack(gateway, [])).json == {"loaded": 0}


async def test_a_key_that_exists(gateway: Gateway, client: EmbeddedClient) -> None:
    await client.load(plain, [("b", 1)])
    answer = await post(gateway, "/v1/plain", lines(["a", 2], ["b", 2]))
    assert answer.status == 409
    assert answer.json["error"]["type"] == "KeyExists"
    assert answer.json["pair"] == 1
    assert answer.json["loaded"] == len(client.state()) - 1
    answer = await post(gateway, "/v1/plain?replace=true", lines(["a", 2], ["b", 2]))
    assert answer.json == {"loaded": 2}
    assert client.entity(plain, "b") == 2


async def test_the_same_body_with_the_same_key_loads_nothing_twice(gateway: Gateway) -> None:
    body = lines(*[[f"k{n}", n] for n in range(20)])
    for _ in range(2):
        assert (await post(gateway, "/v1/plain", body, Idempotency_Key="i")).json == {"loaded": 20}
    assert (await post(gateway, "/v1/plain", body)).status == 409


@pytest.mark.parametrize(
    ("operator", "body", "status", "message"),
    [
        ("plain", b'["a"]', 400, "a line is a JSON array [key, value]"),
        ("plain", b'{"a": 1}', 400, "a line is a JSON array [key, value]"),
        ("plain", b'["a", 1', 400, "not valid JSON"),
        ("plain", b'["a", {"x": 1, "x": 2}]', 400, "twice"),
        ("plain", b'["\xff", 1]', 400, "UTF-8"),
        ("plain", b"[7, 1]", 422, "keys of type str, got 7"),
        ("plain", b'["a", 99999999999999999999999]', 422, "plain['a'] cannot be loaded"),
        ("plain", b'["a", "' + b"x" * 11_000 + b'"]', 413, "plain['a'] has a state of 11003 bytes"),
        ("plain", b'["a", "' + b"x" * 21_000 + b'"]', 413, "limit of 20000"),
        ("item", b'[[1, "a"], {"price": 1}]', 422, "item[(1, 'a')] cannot be loaded: "),
        ("item", b"[[1], 1]", 422, "keys of type (int, str)"),
    ],
)
async def test_a_line_that_cannot_be_loaded(
    gateway: Gateway, client: EmbeddedClient, operator: str, body: bytes, status: int, message: str
) -> None:
    answer = await post(gateway, f"/v1/{operator}", body)
    assert (answer.status, answer.json["loaded"]) == (status, 0), answer.json
    assert message in answer.json["error"]["message"]
    assert client.state() == {}


@pytest.mark.parametrize("body", [b"\xc1", b"\x91\x01", b"\x91\x91\xa1a", b"", b"\x80", b"\x90\x90"])
async def test_a_msgpack_body_that_is_none(gateway: Gateway, body: bytes) -> None:
    answer = await post(gateway, "/v1/plain", body, Content_Type="application/msgpack")
    assert (answer.status, answer.code) == (400, "bad_request")


async def test_a_msgpack_body_over_the_limit(gateway: Gateway) -> None:
    answer = await send_msgpack(gateway, [["a", "x" * 21_000]])
    assert (answer.status, answer.code) == (413, "too_large")


async def test_a_state_that_does_not_fit_in_msgpack(gateway: Gateway, client: EmbeddedClient) -> None:
    answer = await post(
        gateway, "/v1/item", msgspec.msgpack.encode([[[1, "a"], {"price": 1}]]), Content_Type="application/msgpack"
    )
    assert (answer.status, answer.json["pair"], answer.json["loaded"]) == (422, 0, 0)


@pytest.mark.parametrize("query", ["replace=yes", "replace", "replaced=true", "replace=true&x=1"])
async def test_options_that_do_not_exist(gateway: Gateway, query: str) -> None:
    answer = await post(gateway, f"/v1/plain?{query}", lines(["a", 1]))
    assert (answer.status, answer.code) == (400, "bad_request")
    assert "?replace=true" in answer.json["error"]["message"]


async def test_an_operator_that_does_not_exist_and_other_methods(gateway: Gateway) -> None:
    assert (await post(gateway, "/v1/plane", b"")).code == "unknown_operator"
    answer = await exchange(gateway, "PUT", "/v1/plain")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD, POST")


async def test_a_client_that_hangs_up_loads_no_part_of_a_chunk(gateway: Gateway, client: EmbeddedClient) -> None:
    answer = await exchange(gateway, "POST", "/v1/plain", [lines(["a", 1], ["b", 2]), None])
    assert answer.status == 0
    assert client.state() == {}


async def test_an_engine_that_does_not_answer_or_serve() -> None:
    engine = FakeEngine()
    engine.hold()
    answer = await post(Gateway(engine), "/v1/shelf", lines(["a", 1]), Styx_Timeout="0.01")
    assert (answer.status, answer.code, answer.json["loaded"]) == (504, "timeout", 0)
    engine.unavailable_reason = "it is closing"
    answer = await post(Gateway(engine), "/v1/shelf", lines(["a", 1]))
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    engine.reset()
    engine.outcome = OutcomeUnknown("the disk is full")
    answer = await post(Gateway(engine), "/v1/shelf", lines(["a", 1]))
    assert (answer.status, answer.code, answer.json["loaded"]) == (504, "unknown", 0)
    assert "retry-after" not in answer.headers


def test_who_has_loaded_a_part_is_not_asked_to_send_all_of_it_again() -> None:
    nothing, part = (load_failed(LoadFailed("unavailable", "NotSent", "it closes", n)) for n in (0, 1000))
    assert (nothing.status, part.status) == (503, 503)
    assert [dict(answer.headers).get(b"retry-after") for answer in (nothing, part)] == [b"1", None]


async def test_a_body_that_does_not_arrive(client: EmbeddedClient) -> None:
    import asyncio

    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/plain",
        "raw_path": b"/v1/plain",
        "query_string": b"",
        "headers": [(b"styx-timeout", b"0.01"), (b"expect", b"100-continue")],
    }
    await Gateway(client.engine)(scope, receive, send)
    assert sent[0]["status"] == 400
    assert b"no more of the body arrived within 0.01 s" in sent[1]["body"]

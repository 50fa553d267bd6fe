"""`GET /v1/{operator}/{key}`: one entity's state as a transaction, behind a real engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

import styx
from styx import App, Context, Limits, Operator, OutcomeUnknown
from styx.client.embedded import EmbeddedClient
from styx.gateway.app import Gateway
from tests.gateway.asgi import Answer, exchange, post
from tests.gateway.fake_engine import FakeEngine

pytestmark = pytest.mark.anyio


class Doc(msgspec.Struct):
    price: Decimal
    raw: bytes
    when: datetime
    tags: set[str]


plain = Operator("plain")
typed = Operator("typed", key_type=(int, str), state_type=Doc)
numbered = Operator("numbered", key_type=int)


@plain.register
async def add(ctx: Context, by: int = 1) -> int:
    number: int = await ctx.get(0) + by
    await ctx.put(number)
    return number


class UnknownEntity(Exception): ...


@plain.register
async def fail(ctx: Context) -> None:
    raise UnknownEntity("the app's own")


@plain.register
async def put_none(ctx: Context) -> None:
    await ctx.put(None)


app = App("shelf", [plain, typed, numbered])


@pytest.fixture
async def client() -> AsyncIterator[EmbeddedClient]:
    async with styx.embedded(app) as client:
        yield client


@pytest.fixture
def gateway(client: EmbeddedClient) -> Gateway:
    return Gateway(client.engine)


async def get(gateway: Gateway, path: str, **headers: str) -> Answer:
    return await exchange(gateway, "GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})


async def test_a_state_and_its_place(gateway: Gateway) -> None:
    written = (await post(gateway, "/v1/plain/a%2Fb/add", b"[5]")).json["transaction"]
    answer = await get(gateway, "/v1/plain/a%2Fb")
    assert (answer.status, answer.json["result"]) == (200, 5)
    place = answer.json["transaction"]
    assert (place["epoch"], place["phase"], place["id"]) > (written["epoch"], written["phase"], written["id"])
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["styx-request-id"]


async def test_no_such_entity(gateway: Gateway) -> None:
    answer = await get(gateway, "/v1/plain/nobody")
    assert (answer.status, answer.code) == (404, "unknown_entity")
    assert answer.json["error"]["message"] == "plain['nobody'] has no state"
    assert answer.json["transaction"]["id"] > 0
    assert answer.headers["cache-control"] == "no-store"
    await post(gateway, "/v1/plain/nobody/put_none")
    assert (await get(gateway, "/v1/plain/nobody")).json["result"] is None  # a state that is null is a state


async def test_typed_state_is_json_as_results_are(gateway: Gateway, client: EmbeddedClient) -> None:
    doc = Doc(Decimal("1.50"), b"\x00\xff", datetime(2026, 1, 2, tzinfo=UTC), {"b", "a"})
    await client.load(typed, [((7, "x"), doc)])
    answer = await get(gateway, "/v1/typed/%5B7%2C%22x%22%5D")
    expected = {"price": "1.50", "raw": "AP8=", "when": "2026-01-02T00:00:00Z", "tags": ["a", "b"]}
    assert (answer.status, answer.json["result"]) == (200, expected)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/plane/a", 404, "unknown_operator"),
        ("/v1/numbered/one", 422, "bad_arguments"),
        ("/v1/plain/", 422, "bad_arguments"),
        ("/v1/typed/7", 422, "bad_arguments"),
        ("/v1/plain/%ff", 400, "bad_request"),
        ("/v1/plain/a/add", 405, "method_not_allowed"),
        ("/v1/plane", 404, "unknown_operator"),
    ],
)
async def test_refusals(gateway: Gateway, path: str, status: int, code: str) -> None:
    answer = await get(gateway, path)
    assert (answer.status, answer.code) == (status, code)


async def test_other_methods_and_headers(gateway: Gateway) -> None:
    assert (await post(gateway, "/v1/plain/a")).code == "not_found"
    assert (await get(gateway, "/v1/plain/a", Styx_Timeout="x")).status == 400
    assert (await get(gateway, "/v1/plain/a", Styx_Key_Type="int")).status == 422


async def test_the_functions_name_from_outside(gateway: Gateway) -> None:
    """It is no function of the operator; and an app's own exception of that name is an abort like any other."""
    answer = await post(gateway, "/v1/plain/a/%3Cread%3E")
    assert (answer.status, answer.code) == (404, "unknown_function")
    answer = await post(gateway, "/v1/plain/a/fail")
    assert (answer.status, answer.code) == (409, "aborted")


async def test_an_idempotency_key_counts_for_nothing(gateway: Gateway) -> None:
    """A read must not put its reply where a call with the same key would find it."""
    assert (await get(gateway, "/v1/plain/a", Idempotency_Key="r1")).status == 404
    assert (await post(gateway, "/v1/plain/a/add", b"[5]", Idempotency_Key="r1")).json["result"] == 5
    assert (await get(gateway, "/v1/plain/a", Idempotency_Key="r1")).json["result"] == 5
    assert (await get(gateway, "/v1/plain/a", Idempotency_Key="two words")).status == 200


async def test_every_read_sees_what_was_answered_before_it_was_sent(gateway: Gateway) -> None:
    answered = 0

    async def write() -> None:
        nonlocal answered
        for _ in range(200):
            answered = max(answered, (await post(gateway, "/v1/plain/a/add")).json["result"])

    async def read() -> None:
        last = 0
        for _ in range(200):
            least = max(answered, last)
            answer = await get(gateway, "/v1/plain/a")
            last = answer.json.get("result", 0)
            assert last >= least

    await asyncio.gather(write(), write(), read(), read(), read())
    assert answered == 400


async def test_what_the_engine_does_not_do() -> None:
    engine = FakeEngine(Limits(in_flight_max=1))
    gateway = Gateway(engine)
    engine.hold()
    answer = await get(gateway, "/v1/shelf/a", Styx_Timeout="0.001")
    assert (answer.status, answer.code) == (504, "timeout")
    engine.reset()
    engine.outcome = OutcomeUnknown("it failed")
    assert (await get(gateway, "/v1/shelf/a")).code == "unknown"
    engine.unavailable_reason = "it is closing"
    assert (await get(gateway, "/v1/shelf/a")).status == 503


async def test_who_reads_is_no_client_mistake_of_the_app(client: EmbeddedClient, gateway: Gateway, caplog: Any) -> None:
    await get(gateway, "/v1/plain/nobody")
    assert caplog.records == []

"""`GET /v1/{operator}/{key}/{function}`: read-only functions behind a real engine, and their arguments in the query."""

from __future__ import annotations

import enum
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from urllib.parse import quote
from uuid import UUID

import httpx
import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

import styx
from styx import App, Context, Operator, RequestRejected
from styx.client.embedded import EmbeddedClient
from styx.errors import BadArguments
from styx.gateway.app import Gateway
from styx.gateway.openapi import openapi
from styx.gateway.query import QueryReader, takes_text
from styx.model.limits import Limits
from styx.model.signature import ARGUMENTS_MAX
from tests.gateway.asgi import Answer, exchange, post
from tests.gateway.running import running

pytestmark = pytest.mark.anyio


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Point(msgspec.Struct):
    x: int


account = Operator("account", key_type=str)


@account.register
async def deposit(ctx: Context, amount: int) -> int:
    balance: int = await ctx.get(0) + amount
    await ctx.put(balance)
    return balance


@account.register(read_only=True)
async def balance(ctx: Context, at_least: int = 0) -> int:
    """What is there, or a number that is larger."""
    return max(int(await ctx.get(0)), at_least)


@account.register(read_only=True)
async def described(
    ctx: Context,
    text: str,
    when: datetime,
    price: Decimal,
    number: float,
    sure: bool,
    maybe: str | None,
    some: list[str],
    point: Point,
    anything: Any = None,
    *,
    colour: Colour = Colour.RED,
    **rest: int,
) -> str:
    return repr((text, when, price, number, sure, maybe, some, point.x, anything, colour.value, sorted(rest.items())))


@account.register(read_only=True)
async def cheating(ctx: Context) -> None:
    await ctx.put(1)


app = App("bank", [account])


@pytest.fixture
async def client() -> AsyncIterator[EmbeddedClient]:
    async with styx.embedded(app) as client:
        yield client


@pytest.fixture
async def gateway(client: EmbeddedClient) -> Gateway:
    return Gateway(client.engine)


async def get(gateway: Gateway, path: str, method: str = "GET", **headers: str) -> Answer:
    return await exchange(gateway, method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})


async def test_a_read_only_function_by_get_and_by_post(gateway: Gateway) -> None:
    await post(gateway, "/v1/account/ada/deposit", b"[5]")
    answer = await get(gateway, "/v1/account/ada/balance")
    assert (answer.status, answer.json["result"], answer.json["transaction"]["phase"]) == (200, 5, 0)
    assert answer.headers["cache-control"] == "no-store"
    assert (await get(gateway, "/v1/account/ada/balance?at_least=7")).json["result"] == 7
    answer = await post(gateway, "/v1/account/ada/balance", b"[7]")
    assert answer.json["result"] == 7
    assert "cache-control" not in answer.headers


async def test_a_head_has_the_headers_of_a_get_and_no_body(gateway: Gateway) -> None:
    for path in ("/v1/account/ada/balance", "/v1/account/ada", "/v1/account/ada/deposit", "/v1/none/ada/balance"):
        got, head = await get(gateway, path), await get(gateway, path, "HEAD")
        assert (head.status, head.body) == (got.status, b"")
        own = {"styx-request-id": "", "content-length": "", "styx-epoch": ""}  # they are two transactions
        assert {**head.headers, **own} == {**got.headers, **own}
        assert int(head.headers["content-length"]) > 10


async def test_what_may_write_is_not_called_by_get(gateway: Gateway) -> None:
    for method, path, allow in [
        ("GET", "/v1/account/ada/deposit?amount=5", "POST"),
        ("HEAD", "/v1/account/ada/deposit?amount=5", "POST"),
        ("PUT", "/v1/account/ada/balance", "GET, HEAD, POST"),
        ("DELETE", "/v1/account/ada/deposit", "POST"),
        ("DELETE", "/v1/account", "GET, HEAD, POST"),
    ]:
        answer = await get(gateway, path, method)
        assert (answer.status, answer.headers["allow"]) == (405, allow), path
        assert answer.headers["cache-control"] == "no-store", "a 405 may be kept otherwise"
    assert (await get(gateway, "/v1/account/ada")).status == 404, "nothing was put"


async def test_a_violation_is_an_abort(gateway: Gateway) -> None:
    answer = await get(gateway, "/v1/account/ada/cheating")
    assert (answer.status, answer.json["error"]["type"]) == (409, "ReadOnlyViolation")
    assert answer.json["error"]["message"] == (
        "account.cheating on 'ada' used ctx.put, but is registered with read_only=True: do that in another function, "
        "or register cheating without read_only=True"
    )


async def test_an_idempotency_key_counts_for_nothing(gateway: Gateway) -> None:
    assert (await get(gateway, "/v1/account/ada/balance", Idempotency_Key="k")).json["result"] == 0
    await post(gateway, "/v1/account/ada/deposit", b"[5]", Idempotency_Key="k")
    assert (await get(gateway, "/v1/account/ada/balance", Idempotency_Key="k")).json["result"] == 5


async def test_arguments_are_read_by_their_types(gateway: Gateway) -> None:
    query = (
        "text=5&when=2026-01-02T03:04:05Z&price=1.10&number=2&sure=true&maybe=null&some=[%22a%22,%22b%22]"
        "&point={%22x%22:3}&anything=ada+l%20x&colour=red&more=4"
    )
    result = (await get(gateway, f"/v1/account/a/described?{query}")).json["result"]
    assert result == repr(
        (
            *("5", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), Decimal("1.10"), 2.0, True, None, ["a", "b"], 3),
            *("ada l x", "red", [("more", 4)]),
        )
    )


@pytest.mark.parametrize(
    ("query", "status", "named"),
    [
        ("at_least=x", 422, "'at_least'"),
        ("at_least=1.5", 422, "'at_least'"),
        ("at_least=", 422, "'at_least'"),
        ("other=1", 422, "also names 'other'"),
        ("ctx=1", 422, "also names 'ctx'"),
        ("at_least=1&at_least=2", 400, "'at_least' twice"),
        ("at_least=%zz", 400, "percent-encoded"),
        ("at_least=%ff", 400, "percent-encoded"),
        ("at_least=" + "[" * 100_000, 422, "'at_least'"),
        ("&".join(f"a{n}=1" for n in range(ARGUMENTS_MAX + 1)), 400, str(ARGUMENTS_MAX)),
    ],
)
async def test_wrong_queries(gateway: Gateway, query: str, status: int, named: str) -> None:
    answer = await get(gateway, f"/v1/account/ada/balance?{query}")
    assert answer.status == status
    assert named in answer.json["error"]["message"]


async def test_missing_and_no_arguments(gateway: Gateway) -> None:
    answer = await get(gateway, "/v1/account/ada/described")
    assert (answer.status, answer.code) == (422, "bad_arguments")
    assert "lacks text" in answer.json["error"]["message"]
    assert (await get(gateway, "/v1/account/ada/cheating?x=1")).status == 422


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (str, True),
        (bytes, True),
        (datetime, True),
        (Decimal, True),
        (UUID, True),
        (Colour, True),
        (Literal["a", "b"], True),
        (Annotated[str, msgspec.Meta(min_length=1)], True),
        (int, False),
        (Size, False),
        (Literal["a", 1], False),
        (str | None, False),
        (list[str], False),
        (Any, False),
        (object, False),
        ("no type", False),
    ],
)
def test_which_types_are_text(annotation: Any, text: bool) -> None:
    assert takes_text(annotation) is text


UNION = Operator("union")


@UNION.register(read_only=True)
async def union(ctx: Context, name: str | None = None, either: int | str = 0, open: Any = None) -> None: ...


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ("name=ada", {"name": "ada"}),
        ("name=null", {"name": None}),
        ("name=%22null%22", {"name": "null"}),
        ("name=5", {"name": "5"}),
        ("either=5", {"either": 5}),
        ("either=%225%22", {"either": "5"}),
        ("either=5a", {"either": "5a"}),
        ("open=[1,{}]", {"open": [1, {}]}),
        ("open=[1", {"open": "[1"}),
        ("open", {"open": ""}),
        ("name=%22\\ud800%22", {"name": '"\\ud800"'}),
    ],
)
def test_json_first_then_text(query: str, arguments: dict[str, Any]) -> None:
    reader = QueryReader(UNION.function("union").signature)
    assert json.loads(reader.body(quote(query, safe="=%&").encode())) == arguments


def test_a_query_without_arguments() -> None:
    reader = QueryReader(UNION.function("union").signature)
    assert reader.body(b"") == b""
    with pytest.raises(RequestRejected, match="percent-encoded"):
        reader.body("name=é".encode())
    with pytest.raises(BadArguments, match="also names"):
        reader.body(b"nam=ada")


async def test_openapi_has_both_operations() -> None:
    document: Any = openapi(app)
    OpenAPIV31SpecValidator(json.loads(json.dumps(document))).validate()
    item = document["paths"]["/v1/account/{key}/balance"]
    assert item["get"]["operationId"] == "account.balance:get"
    assert item["get"]["x-styx-read-only"] is item["post"]["x-styx-read-only"] is True
    assert "requestBody" not in item["get"]
    named = [parameter["name"] for parameter in item["get"]["parameters"] if "name" in parameter]
    assert named == ["key", "at_least"]
    shared = [parameter["$ref"].rpartition("/")[2] for parameter in item["get"]["parameters"] if "$ref" in parameter]
    assert shared == ["Freshness", "At", "Epoch", "MaxStaleness", "Timeout"]
    assert "read" in item["get"]["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
    assert item["get"]["responses"]["410"] == {"$ref": "#/components/responses/Gone"}
    written = document["paths"]["/v1/account/{key}/deposit"]
    assert list(written) == ["post"]
    assert "x-styx-read-only" not in written["post"]
    by_name = {p.get("name"): p for p in document["paths"]["/v1/account/{key}/described"]["get"]["parameters"]}
    assert by_name["text"] == {"name": "text", "in": "query", "required": True, "schema": by_name["text"]["schema"]}
    assert "application/json" in by_name["some"]["content"]
    assert by_name["colour"]["required"] is False


async def test_over_the_size_of_a_value() -> None:
    async with styx.embedded(app, limits=Limits(value_bytes_max=100)) as client:
        answer = await get(Gateway(client.engine), f"/v1/account/a/described?text={'x' * 200}&when=&price=&number=1")
    assert answer.status in (413, 422)


async def test_a_connection_goes_on_behind_a_head(client: EmbeddedClient) -> None:
    async with running(client.engine) as served, httpx.AsyncClient(base_url=served.url) as http:
        got = await http.get("/v1/account/ada/balance", params={"at_least": 3})
        head = await http.head("/v1/account/ada/balance", params={"at_least": 3})
        again = await http.get("/v1/account/ada/balance", params={"at_least": 3})
    assert got.json()["result"] == again.json()["result"] == 3
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["content-length"]) > 10

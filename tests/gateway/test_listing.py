"""Listings by HTTP: the query, the headers, the answer, and who may ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

import styx
from styx import App, Context, Operator
from styx.client.embedded import EmbeddedClient
from styx.gateway.app import Gateway
from styx.gateway.openapi import openapi
from styx.model.limits import Limits
from tests.gateway.asgi import Answer, exchange

pytestmark = pytest.mark.anyio


class Item(msgspec.Struct):
    product: int


account = Operator("account", key_type=str)
seat = Operator("seat", key_type=(int, str))
items = seat.table("items", Item, key="product")


@account.register
async def put(ctx: Context, value: Any) -> None:
    await ctx.put(value)


app = App("bank", operators=[account, seat])


@pytest.fixture
async def client() -> AsyncIterator[EmbeddedClient]:
    async with styx.embedded(app, limits=Limits(versions_max=2)) as client:
        await client.load(account, [(key, {"of": key}) for key in ("a&b", "a/b", "b", "é")])
        await client.load(seat, [((1, "x"), 1), ((1, "y"), 2)])
        await client.load_rows(items, [((1, "x"), Item(7))])
        yield client


@pytest.fixture
def gateway(client: EmbeddedClient) -> Gateway:
    return Gateway(client.engine)


async def ask(gateway: Gateway, path: str, method: str = "GET", **headers: str) -> Answer:
    return await exchange(
        gateway, method, path, [b""], {name.replace("_", "-"): text for name, text in headers.items()}
    )


async def test_a_page_and_the_next_one(client: EmbeddedClient, gateway: Gateway) -> None:
    first = await ask(gateway, "/v1/account?limit=2")
    assert (first.status, first.headers["cache-control"]) == (200, "no-store")
    epoch = first.json["read"]["epoch"]
    assert first.headers["styx-epoch"] == str(epoch)
    assert first.json["result"] == {
        "entries": [{"key": "a&b", "value": {"of": "a&b"}}, {"key": "a/b", "value": {"of": "a/b"}}],
        "after": "a/b",
    }
    await client.call(account, "b", put, "changed")
    rest = await ask(gateway, "/v1/account?after=a%2Fb&values=false", styx_at=str(epoch))
    assert rest.json == {"result": {"entries": [{"key": "b"}, {"key": "é"}], "after": None}, "read": {"epoch": epoch}}
    newest = await ask(gateway, "/v1/account?prefix=b", styx_freshness="strict")
    assert newest.json["result"]["entries"] == [{"key": "b", "value": "changed"}]


async def test_composite_keys_and_rows(gateway: Gateway) -> None:
    found = await ask(gateway, "/v1/seat?prefix=%5B1%5D&limit=1")
    assert found.json["result"] == {"entries": [{"key": [1, "x"], "value": 1}], "after": '[1,"x"]'}
    rows = await ask(gateway, "/v1/seat?rows=items")
    assert rows.json["result"] == {"entries": [{"key": [1, "x", 7], "value": {"product": 7}}], "after": None}


async def test_a_null_is_a_value_and_bytes_are_base64(client: EmbeddedClient, gateway: Gateway) -> None:
    await client.call(account, "none", put, None)
    await client.call(account, "nothing", put, b"\xff")
    found = await ask(gateway, "/v1/account?prefix=no")
    assert found.json["result"]["entries"] == [{"key": "none", "value": None}, {"key": "nothing", "value": "/w=="}]


@pytest.mark.parametrize(
    ("path", "status", "complaint"),
    [
        ("/v1/nobody", 404, "has no operator 'nobody'"),
        ("/v1/account?limit=0", 422, "1 to 10000 entries"),
        ("/v1/account?limit=x", 422, "is a number of entries"),
        ("/v1/account?limit=%D9%A1", 422, "is a number of entries"),
        ("/v1/account?values=1", 422, "is true or false"),
        ("/v1/account?first=1", 422, "it has: prefix, after, limit, values, rows"),
        ("/v1/account?limit=1&limit=2", 422, "each parameter once"),
        ("/v1/account?rows=items", 422, "has no table 'items'"),
        ("/v1/seat?prefix=1", 422, "is a JSON array"),
        ("/v1/seat?after=x", 422, "must be a JSON array"),
    ],
)
async def test_what_is_refused(gateway: Gateway, path: str, status: int, complaint: str) -> None:
    answer = await ask(gateway, path)
    assert (answer.status, complaint in answer.json["error"]["message"]) == (status, True), answer.json


async def test_an_epoch_that_is_not_kept_is_gone(client: EmbeddedClient, gateway: Gateway) -> None:
    epoch = (await ask(gateway, "/v1/account?limit=1")).json["read"]["epoch"]
    for number in range(4):
        await client.call(account, "b", put, number)
    gone = await ask(gateway, "/v1/account?after=a", styx_at=str(epoch))
    assert (gone.status, gone.json["error"]["code"]) == (410, "snapshot_too_old")
    assert gone.json["error"]["type"] == "SnapshotTooOld", "as of every read"


async def test_methods(gateway: Gateway) -> None:
    head = await ask(gateway, "/v1/account", "HEAD")
    assert (head.status, head.body) == (200, b"")
    put = await ask(gateway, "/v1/account", "PUT")
    assert (put.status, put.headers["allow"]) == (405, "GET, HEAD, POST")


async def test_an_epoch_that_does_not_come_is_a_timeout(gateway: Gateway) -> None:
    late = await ask(gateway, "/v1/account", styx_at="1000000", styx_timeout="0.05")
    assert late.status == 504
    assert "the read has not ended within 0.05 s; nothing was changed" in late.json["error"]["message"]
    assert "epoch 1000000" in late.json["error"]["message"]


def test_the_document_has_the_listings() -> None:
    document = openapi(app)
    operation = document["paths"]["/v1/seat"]["get"]
    assert operation["operationId"] == "seat:list"
    assert [each.get("name") for each in operation["parameters"]][:5] == ["prefix", "after", "limit", "values", "rows"]
    entry = operation["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["result"]
    assert entry["properties"]["entries"]["items"]["required"] == ["key"]
    assert "410" in operation["responses"]
    assert "rows" not in [each.get("name") for each in document["paths"]["/v1/account"]["get"]["parameters"]]

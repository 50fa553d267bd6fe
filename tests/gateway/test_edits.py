"""Edits over HTTP: compared with what was seen, by all rules of types, tables, views and references, and in the log."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

import styx
from styx import App, Check, Context, Index, Operator, Ref
from styx.client.embedded import EmbeddedClient
from styx.gateway.app import Gateway
from styx.model.function_spec import EDIT_FUNCTION
from styx.testing import embedded_cluster
from styx.testing.recorded_history import read_history
from tests.gateway.asgi import Answer, exchange

pytestmark = pytest.mark.anyio


class Account(msgspec.Struct):
    balance: Decimal
    seen: datetime | None = None
    raw: bytes = b""
    tags: set[str] = set()

    def __post_init__(self) -> None:
        if self.balance in REFUSED:
            raise ValueError("refused")


class Item(msgspec.Struct):
    product: int
    label: str = "a"
    price: int = 1


class Shade(enum.Enum):
    DARK = "dark"


class Visit(msgspec.Struct):
    day: date
    shade: Shade
    paid: bool
    note: str = ""


class Part(msgspec.Struct):
    number: int
    of: int


REFUSED: set[Decimal] = set()
account = Operator("account", key_type=str, state_type=Account)
plain = Operator("plain", key_type=str)
cart = Operator("cart", key_type=str)
items = cart.table(
    "items",
    Item,
    key="product",
    indexes=[Index("by_label", equal="label", unique=True)],
    checks=[Check("cheap", lambda row: row.price < 10)],
)
parts = cart.table("parts", Part, key="number", references=[Ref("of", items)])
visits = cart.table("visits", Visit, key=("day", "shade", "paid"))
totals: Any = items.view("totals", sum="price")


@plain.register
async def put(ctx: Context, value: Any) -> None:
    await ctx.put(value)


@plain.register
async def calls_an_edit(ctx: Context) -> None:
    await ctx.call(plain, EDIT_FUNCTION, ctx.key, ("", [], "", None))


app = App("shop", [account, plain, cart])


@pytest.fixture
async def client() -> AsyncIterator[EmbeddedClient]:
    async with embedded_cluster(app) as client:
        yield client  # at the end all requests are run again, edits as well


@pytest.fixture
def gateway(client: EmbeddedClient) -> Gateway:
    return Gateway(client.engine)


async def look(gateway: Gateway, path: str) -> Answer:
    return await exchange(gateway, "GET", f"/v1/~edit/{path}")


async def edit(gateway: Gateway, path: str, body: dict[str, Any]) -> Answer:
    sent = msgspec.json.encode(body)
    return await exchange(gateway, "POST", f"/v1/~edit/{path}", [sent], {"content-type": "application/json"})


async def changed(gateway: Gateway, path: str, value: Any) -> Answer:
    """An edit of what is there now."""
    return await edit(gateway, path, {"mark": (await look(gateway, path)).json["result"]["mark"], "value": value})


async def test_a_value_is_seen_changed_and_deleted(client: EmbeddedClient, gateway: Gateway) -> None:
    none = await look(gateway, "account/ada")
    assert none.json["result"] == {"mark": ""}
    assert none.json["transaction"]["id"] > 0
    value = {"balance": "1.50", "seen": "2026-01-02T00:00:00Z", "raw": "AP8=", "tags": ["a", "b"]}
    made = await edit(gateway, "account/ada", {"mark": "", "value": value})
    assert made.status == 200
    assert client.entity(account, "ada") == Account(
        Decimal("1.50"), datetime(2026, 1, 2, tzinfo=UTC), b"\x00\xff", {"a", "b"}
    )
    seen = await look(gateway, "account/ada")
    assert seen.json["result"] == {"mark": made.json["result"]["mark"], "value": value}
    gone = await edit(gateway, "account/ada", {"mark": seen.json["result"]["mark"], "delete": True})
    assert gone.json["result"] == {"mark": ""}
    assert client.entity(account, "ada") is None


async def test_what_was_changed_since_is_not_overwritten(client: EmbeddedClient, gateway: Gateway) -> None:
    await client.call(plain, "a", put, 1)
    mark = (await look(gateway, "plain/a")).json["result"]["mark"]
    await client.call(plain, "a", put, 2)
    for body in ({"mark": mark, "value": 3}, {"mark": "", "value": 3}, {"mark": mark, "delete": True}):
        answer = await edit(gateway, "plain/a", body)
        assert (answer.status, answer.json["error"]["type"]) == (409, "EditConflict")
        assert "has another value now. Nothing was written" in answer.json["error"]["message"]
    assert client.entity(plain, "a") == 2
    await client.call(plain, "a", put, 1)
    assert (await edit(gateway, "plain/a", {"mark": mark, "value": 3})).status == 200, "it is what was seen"


async def test_the_same_edit_again_is_not_made_twice(client: EmbeddedClient, gateway: Gateway) -> None:
    assert (await edit(gateway, "plain/a", {"mark": "", "value": 1})).status == 200
    assert (await edit(gateway, "plain/a", {"mark": "", "value": 1})).json["error"]["type"] == "EditConflict"


@pytest.mark.parametrize("value", [b"\xff", {"a": datetime(2026, 1, 2, tzinfo=UTC)}, {1: 2}, float("nan"), [b""]])
async def test_a_value_that_its_json_would_change_is_not_given(
    client: EmbeddedClient, gateway: Gateway, value: Any
) -> None:
    await client.call(plain, "a", put, value)
    answer = await look(gateway, "plain/a")
    assert answer.status == 409
    assert "cannot be edited as JSON" in answer.json["error"]["message"]


@pytest.mark.parametrize("value", [None, 1.5, "", [1, {"a": [None]}], 2**63, {"é": "😀"}])
async def test_plain_values(client: EmbeddedClient, gateway: Gateway, value: Any) -> None:
    await client.call(plain, "a", put, value)
    found = (await look(gateway, "plain/a")).json["result"]
    assert found["value"] == value
    assert (await edit(gateway, "plain/b", {"mark": "", "value": value})).json["result"]["mark"] == found["mark"]
    assert client.entity(plain, "b") == value


async def test_a_value_that_does_not_fit_its_type_any_more_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    async with styx.embedded(app) as client:
        gateway = Gateway(client.engine)
        await client.load(account, [("a", Account(Decimal(13)))])
        monkeypatch.setattr("tests.gateway.test_edits.REFUSED", {Decimal(13)})
        found = (await look(gateway, "account/a")).json["result"]
        assert found["value"]["balance"] == "13"
        kept = await edit(gateway, "account/a", {"mark": found["mark"], "value": {"balance": "13"}})
        assert (kept.status, "refused" in kept.json["error"]["message"]) == (422, True)
        repaired = await edit(gateway, "account/a", {"mark": found["mark"], "value": {"balance": "12"}})
        assert repaired.status == 200
        assert client.entity(account, "a") == Account(Decimal(12))


ROW = "cart/a?rows=items&pk=%5B1%5D"


async def test_rows_keep_all_rules(client: EmbeddedClient, gateway: Gateway) -> None:
    await client.load_rows(items, [("a", Item(1)), ("a", Item(2, "b"))])
    await client.load_rows(parts, [("a", Part(7, 2))])
    assert (await look(gateway, ROW)).json["result"]["value"] == {"product": 1, "label": "a", "price": 1}
    assert (await changed(gateway, ROW, {"product": 1, "label": "c", "price": 5})).status == 200
    assert client.rows(totals, "a")[0].price == 6
    for row, kind in (
        ({"product": 1, "label": "b"}, "UniqueViolation"),
        ({"product": 1, "price": 10}, "CheckViolation"),
        ({"product": 3}, "BadArguments"),
    ):
        answer = await changed(gateway, ROW, row)
        assert (answer.status, answer.json["error"]["type"]) == (409, kind), answer.json
    referred = "cart/a?rows=items&pk=%5B2%5D"
    mark = (await look(gateway, referred)).json["result"]["mark"]
    answer = await edit(gateway, referred, {"mark": mark, "delete": True})
    assert answer.json["error"]["type"] == "ReferenceViolation"
    mark = (await look(gateway, ROW)).json["result"]["mark"]
    assert (await edit(gateway, ROW, {"mark": mark, "delete": True})).status == 200
    assert client.rows(totals, "a")[0].price == 1
    assert (await edit(gateway, ROW, {"mark": mark, "value": {"product": 1}})).json["error"]["type"] == "EditConflict"
    assert (await changed(gateway, ROW, {"product": 1})).status == 200
    assert client.rows(items, "a") == [Item(1), Item(2, "b")]


async def test_a_primary_key_is_given_as_the_rows_json_has_it(client: EmbeddedClient, gateway: Gateway) -> None:
    await client.load_rows(visits, [("a", Visit(date(2024, 2, 29), Shade.DARK, True))])
    path = "cart/a?rows=visits&pk=%5B%222024-02-29%22,%22dark%22,true%5D"
    shown = (await look(gateway, path)).json["result"]["value"]
    assert (await changed(gateway, path, {**shown, "note": "x"})).status == 200
    assert client.rows(visits, "a") == [Visit(date(2024, 2, 29), Shade.DARK, True, "x")]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "nobody/a", b"", 404),
        ("GET", "plain", b"", 404),
        ("GET", "plain/a/b", b"", 404),
        ("PUT", "plain/a", b"", 405),
        ("POST", "plain/a", b"[]", 400),
        ("POST", "plain/a", b'{"mark":""}', 422),
        ("POST", "plain/a", b'{"mark":"","value":1,"delete":true}', 422),
        ("POST", "plain/a", b'{"mark":"","value":1,"x":1}', 400),
        ("POST", "account/a", b'{"mark":"","value":{"balance":"x"}}', 422),
        ("POST", "account/a", b'{"mark":"","value":{"balance":"1","sene":null}}', 422),
        ("POST", "cart/a?rows=items&pk=%5B1%5D", b'{"mark":"","value":{"product":1,"lable":"b"}}', 422),
        ("GET", "cart/a?rows=totals&pk=%5B%5D", b"", 422),
        ("GET", "cart/a?rows=items", b"", 422),
        ("GET", "cart/a?rows=items&pk=1", b"", 422),
        ("GET", "cart/a?rows=items&pk=%5B%22x%22%5D", b"", 422),
        ("GET", "cart/a?rows=visits&pk=%5B738945,%22dark%22,true%5D", b"", 422),
        ("GET", "cart/a?rows=visits&pk=%5B%222024-02-29%22%5D", b"", 422),
        ("GET", "cart/a?rows=nix&pk=%5B1%5D", b"", 422),
    ],
)
async def test_what_is_refused(gateway: Gateway, method: str, path: str, body: bytes, status: int) -> None:
    answer = await exchange(gateway, method, f"/v1/~edit/{path}", [body], {"content-type": "application/json"})
    assert answer.status == status, answer.body


async def test_no_function_can_call_it_and_it_is_in_the_log(gateway: Gateway, client: EmbeddedClient) -> None:
    with pytest.raises(styx.TransactionAborted, match="has no function '<edit>'"):
        await client.call(plain, "a", calls_an_edit)
    answer = await exchange(gateway, "POST", "/v1/plain/a/%3Cedit%3E", [b'["",[],"",null]'])
    assert answer.json["error"]["code"] == "unknown_function"
    assert (await edit(gateway, "plain/a", {"mark": "", "value": 1})).status == 200
    await client.engine.flushed()
    requests = read_history(client.engine.log, client.engine.n_slots).requests.values()
    assert [each.key for each, _ in requests if each.function == EDIT_FUNCTION] == ["a"]

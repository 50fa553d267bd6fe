"""Tables in the OpenAPI document: told in words, and as what reads and loads take."""

from __future__ import annotations

from typing import Any

import msgspec
from openapi_spec_validator import validate

from styx import App, Check, Event, Index, Operator, Ref
from styx.gateway.openapi import openapi


class Item(msgspec.Struct):
    product: int
    label: str | None = None


class Part(msgspec.Struct):
    number: str
    of: int


def shop() -> App:
    cart = Operator("cart")
    items = cart.table(
        "items",
        Item,
        key="product",
        indexes=[Index("by_label", equal="label", unique=True)],
        checks=[Check("positive", lambda row: row.product > 0)],
    )
    parts = cart.table("parts", Part, key="number", references=[Ref("of", items, on_delete="cascade")])
    parts.view("used", group_by="of", where=lambda row: row.of > 1)
    parts.view("all", sum="of", scope="app")
    return App("shop", [cart, Operator("plain")])


def document() -> Any:
    return openapi(shop())


def test_it_is_valid() -> None:
    validate(document())


def test_tables_in_words() -> None:
    cart, plain, *_ = document()["tags"]
    assert plain == {"name": "plain"}
    assert cart["description"].split("\n")[2:] == [
        "- `items`: product (int), label (str | None). Primary key product; index by_label: equal=label; unique; check "
        "positive.",
        "- `parts`: number (str), of (int). Primary key number; index reference of: equal=of; reference "
        "cart/parts(of) → cart/items, cascade; view used: count; group_by=of; where; view all: count; sum=of; over all "
        "entities.",
    ]


def test_rows_of_a_read_and_a_load() -> None:
    found = document()
    read, load = found["paths"]["/v1/cart/{key}"]["get"], found["paths"]["/v1/cart"]["post"]
    for operation, tables in ((read, ["items", "parts", "used"]), (load, ["items", "parts"])):
        [rows] = [each for each in operation["parameters"] if each.get("name") == "rows"]
        assert rows["schema"]["enum"] == tables
    result = read["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["result"]
    assert result["anyOf"][1:] == [
        {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
        {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
        {"type": "array", "items": {"$ref": "#/components/schemas/cart_parts_used"}},
    ]
    assert found["components"]["schemas"]["Item"]["required"] == ["product"]
    plain = found["paths"]["/v1/plain/{key}"]["get"]
    assert not [each for each in plain["parameters"] if each.get("name") == "rows"]


def test_kept_events_are_read_and_not_loaded() -> None:
    events: list[Event[Any]] = [
        Event("paid", Item, rows=True),
        Event("order-noted", Part, rows=True),
        Event("gone", int),
    ]
    found: Any = openapi(App("shop", [Operator("cart"), Operator("order")], events=events))
    validate(found)
    for name in ("cart", "order"):
        [rows] = [
            each for each in found["paths"][f"/v1/{name}/{{key}}"]["get"]["parameters"] if each.get("name") == "rows"
        ]
        assert rows["schema"]["enum"] == ["paid", "order-noted"]
        assert not [each for each in found["paths"][f"/v1/{name}"]["post"]["parameters"] if each.get("name") == "rows"]
    schemas = found["components"]["schemas"]
    kept = {name: schema["properties"]["value"] for name, schema in schemas.items() if "KeptEvent" in name}
    assert kept == {
        "KeptEvent.paid": {"$ref": "#/components/schemas/Item"},
        "KeptEvent.order-noted": {"$ref": "#/components/schemas/Part"},
    }

"""Entities, rows and listings of a snapshot are what functions have read, with and without the app."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx.errors import BadArguments, BadKey, UnknownOperator
from styx.query.entities import absent, entity_json, page, rows_json
from styx.query.schema import Schema
from styx.query.slots import Slots
from tests.query.conftest import Filled
from tests.query.shop import CARTS, ORDERS

SCHEMAS = ["by_app", "by_description"]


def schema_of(filled: Filled, name: str) -> Schema:
    schema: Schema = getattr(filled, name)
    return schema


def text_of(key: Any) -> str:
    return key if type(key) is str else msgspec.json.encode(key).decode()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_entity(filled: Filled, schema: str) -> None:
    seen = 0
    for (operator, key), value in filled.told.state.items():
        if "/" not in operator:
            found = entity_json(filled.source, schema_of(filled, schema), operator, text_of(key))
            assert found == msgspec.json.encode(value)
            seen += 1
    assert seen == 13


@pytest.mark.parametrize("schema", SCHEMAS)
def test_rows_of_every_entity(filled: Filled, schema: str) -> None:
    by = schema_of(filled, schema)
    for name, rows in filled.told.carts.items():
        assert msgspec.json.decode(rows_json(filled.source, by, "cart", "items", name)) == rows
    for key, amounts in filled.told.amounts.items():
        found = msgspec.json.decode(rows_json(filled.source, by, "order", "lines", text_of(key)))
        assert found == [[number, f"line {number}", amount] for number, amount in enumerate(amounts)]
    assert rows_json(filled.source, by, "cart", "items", "nobody") == b"[]"


def test_groups_of_a_view_have_their_ends(filled: Filled) -> None:
    for name, groups in filled.told.groups.items():
        assert msgspec.json.decode(rows_json(filled.source, filled.by_app, "cart", "mine", name)) == groups
    entries = page(filled.source, filled.by_app.dataset("cart/by_seller")).entries
    assert {each.key[0]: msgspec.json.decode(each.value) for each in entries} == filled.told.sellers


def test_what_there_is_not(filled: Filled) -> None:
    source, by = filled.source, filled.by_description
    assert entity_json(source, by, "account", "eve") is None, "it was deleted after the first snapshot"
    assert absent(by.dataset("account"), "eve") == "account['eve'] has no state"
    for operator, key, complaint in (
        ("counter", "x", "a decimal number"),
        ("order", "[1,2]", r"has keys of type \(int, str\)"),
    ):
        with pytest.raises(BadKey, match=complaint):
            entity_json(source, by, operator, key)
    with pytest.raises(
        UnknownOperator, match="app 'look' has no operator 'cat'; it has: account, cart, counter, order"
    ):
        entity_json(source, by, "cat", "x")
    with pytest.raises(
        UnknownOperator, match=r"operator 'cart' has no table 'mine'; it has: .*views are shown with --app"
    ):
        rows_json(source, by, "cart", "mine", "x")
    with pytest.raises(BadArguments, match="is a view over many entities: list or export it"):
        rows_json(source, filled.by_app, "cart", "by_seller", "x")


@pytest.mark.parametrize("name", ["account", "counter", "order", "cart/items", "order/lines", "cart/item-sold"])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_pages_have_all_keys_in_order(filled: Filled, name: str, limit: int) -> None:
    dataset = filled.by_description.dataset(name)
    keys, after, pages = [], None, 0
    while pages == 0 or after is not None:
        found = page(filled.source, dataset, after=after, limit=limit)
        keys += [each.key for each in found.entries]
        after, pages = found.after, pages + 1
    slots = Slots(filled.source).all_entries({dataset.stored})
    stored = [key for entries in slots for key in entries.get(dataset.stored, ())]
    assert keys == sorted(stored)
    assert pages == max(1, -(-len(keys) // limit))
    assert len(keys) == {"account": 5, "counter": 4, "order": 4, "order/lines": 6, "cart/items": 51}.get(name, 60)


def test_prefixes(filled: Filled) -> None:
    def keys(name: str, prefix: str) -> list[Any]:
        return [each.key for each in page(filled.source, filled.by_description.dataset(name), prefix).entries]

    assert keys("account", "") == ["ada", "bob", "empty value", "late", "ädä"]
    assert keys("account", "a") == ["ada"]
    assert keys("account", "x") == []
    assert keys("order", "[1]") == [(1, "x"), (1, "y/z")]
    assert keys("order", '[1,"y"]') == [(1, "y/z")]
    assert keys("order", '[1,"x",3]') == []
    assert keys("order/lines", "[2]") == sorted((*ORDERS[at], line) for at in (2, 3) for line in range(at))
    assert keys("cart/items", f'["{CARTS[3]}"]') == keys("cart/items", '["cart-03",3]') + [
        ("cart-03", number) for number in (15, 27, 39, 51)
    ]
    for name, prefix, complaint in (
        ("counter", "7", "are numbers, which have no prefix"),
        ("order", "1", "is a JSON array such as"),
        ("cart/items", "cart", "is a JSON array such as"),
    ):
        with pytest.raises(BadKey, match=complaint):
            keys(name, prefix)


def test_a_cursor_of_another_type_than_the_keys_is_refused(filled: Filled) -> None:
    with pytest.raises(BadKey, match="have parts of other types than"):
        page(filled.source, filled.by_description.dataset("order/lines"), after='["x"]')

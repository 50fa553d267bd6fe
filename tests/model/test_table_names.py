"""Names of tables: whom each belongs to, what it holds, and which entity a key of it belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from styx import Operator
from styx.model.sequence import entry_of, table_of
from styx.model.table_names import (
    entities_of,
    holds_rows,
    holds_sequences,
    holds_values,
    owner_of,
    row_key,
    row_table,
)

cart = Operator("cart", key_type=str)
till = Operator("till", key_type=(str, int))


@pytest.mark.parametrize(
    ("table", "holds"),
    [("cart", "values"), (table_of("cart"), "sequences"), (row_table("cart", "items"), "rows")],
)
def test_each_table_has_an_owner_and_holds_one_thing(table: str, holds: str) -> None:
    assert owner_of(table) == "cart"
    found = {"values": holds_values(table), "sequences": holds_sequences(table), "rows": holds_rows(table)}
    assert [name for name, held in found.items() if held] == [holds]


@pytest.mark.parametrize(
    ("operator", "table", "keys", "entities"),
    [
        (cart, "cart", ["a", "b"], ["a", "b"]),
        (cart, table_of("cart"), [entry_of("a", "bills")], ["a"]),
        (cart, "cart/items", [("a", 1), ("b", 1, 2)], ["a", "b"]),
        (till, "till", [("a", 1)], [("a", 1)]),
        (till, table_of("till"), [entry_of(("a", 1), "receipts")], [("a", 1)]),
        (till, "till/items", [("a", 1, 7), ("b", 1, "x", 2)], [("a", 1), ("b", 1)]),
    ],
)
def test_a_key_belongs_to_an_entity(operator: Operator, table: str, keys: list[Any], entities: list[Any]) -> None:
    assert list(entities_of(operator, table, keys)) == entities


def test_a_key_that_belongs_to_none_is_no_key_of_the_operator() -> None:
    assert list(entities_of(cart, "cart/items", [("a",)])) == [("a",)]


def test_the_parts_of_a_rows_key() -> None:
    assert row_key(cart, ("a", 5)) == ("a", 5)
    assert row_key(cart, ("a", 5, 6)) == ("a", (5, 6))
    assert row_key(till, ("a", 1, 5)) == (("a", 1), 5)

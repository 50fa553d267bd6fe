"""The columns of values, rows and views; and rows that a stored schema does not describe wholly."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx.errors import UnsupportedValue
from styx.query.schema import Schema, of_description
from styx.schema.description import AppDescription, OperatorDescription, TableDescription
from tests.query.conftest import Filled


def test_columns(filled: Filled) -> None:
    by_app, by_description = filled.by_app, filled.by_description
    assert [tuple(each) for each in by_app.dataset("order").columns] == [
        *(("key", "int"), ("key_2", "str"), ("total", "Decimal"), ("lines", "int"), ("note", "str")),
    ]
    assert [tuple(each) for each in by_description.dataset("order").columns] == [
        *(("key", "int"), ("key_2", "str"), ("value", "json")),
    ]
    assert by_app.dataset("cart/items").columns == by_description.dataset("cart/items").columns
    assert [each.name for each in by_app.dataset("order/lines").columns] == [
        *("entity_key", "key_2", "number", "key", "amount"),
    ]
    assert [tuple(each) for each in by_app.dataset("cart/mine").columns] == [
        *(("key", "str"), ("seller", "str"), ("count", "int"), ("price", "Decimal"), ("max_price", "Decimal")),
    ]
    assert [each.name for each in by_app.dataset("cart/here").columns] == ["partition", "colour", "count"]
    assert [each.name for each in by_app.dataset("cart/by_seller").columns] == [
        *("seller", "count", "price", "min_price", "min_day"),
    ]


def test_the_description_has_all_but_views(filled: Filled) -> None:
    views = {"cart/mine", "cart/here", "cart/by_seller"}
    assert filled.by_app.datasets.keys() - filled.by_description.datasets.keys() == views
    assert filled.by_description.datasets.keys() <= filled.by_app.datasets.keys()


def described() -> Schema:
    """A table whose rows are written by the test."""
    table = TableDescription(key=["a"], columns={"a": "int", "b": "str | None"})
    operator = OperatorDescription(
        n_partitions=None, key_type="str", partition_key=False, functions={}, tables={"t": table}
    )
    return of_description(AppDescription(name="x", operators={"o": operator}))


def rows(schema: Schema, row: Any) -> list[tuple[Any, ...]]:
    return list(schema.dataset("o/t").records({"o/t": {("k", 1): msgspec.msgpack.encode(row)}}))


def test_rows_of_older_types_lack_columns() -> None:
    schema = described()
    assert rows(schema, {"a": 1}) == [("k", 1, None)]
    assert rows(schema, [1]) == [("k", 1, None)]
    assert schema.notes == set()


def test_parts_without_a_column_are_told() -> None:
    schema = described()
    assert rows(schema, {"a": 1, "B": "x"}) == [("k", 1, None)]
    assert len(schema.notes) == 1
    assert "rows of o/t have parts that are no columns of the stored schema, such as 'B'" in min(schema.notes)


@pytest.mark.parametrize("row", [[1, "x", 3], {"a": "1"}])
def test_rows_that_cannot_be_shown_are_named(row: Any) -> None:
    with pytest.raises(
        UnsupportedValue, match=r"o/t\[\('k', 1\)\] cannot be shown: .* give them with --app MODULE:APP"
    ):
        rows(described(), row)

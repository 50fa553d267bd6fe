"""Values in columns have the column's type, whether they were decoded by types or are as they are stored."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest

from styx.errors import UnsupportedValue
from styx.query.fields import Field, json_of, kind_of, shown_value, unique_names
from tests.query.shop import Colour

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("type_name", "kind"),
    [
        ("int", "int"),
        ("Decimal | None", "Decimal"),
        ("str enum Colour", "str"),
        ("int enum Level | None", "int"),
        ("naive datetime", "naive datetime"),
        ("a type without an order", "json"),
        ("a type that allows UNSET", "json"),
    ],
)
def test_kinds_by_the_names_of_types(type_name: str, kind: str) -> None:
    assert kind_of(type_name) == kind


@pytest.mark.parametrize(
    ("kind", "values", "shown"),
    [
        ("int", [3], 3),
        ("str", ["red", Colour.RED], "red"),
        ("float", [2.0, 2], 2.0),
        ("Decimal", ["1.50", Decimal("1.50"), Decimal("1.5")], Decimal("1.5")),
        ("date", ["2026-01-02", date(2026, 1, 2)], date(2026, 1, 2)),
        ("datetime", ["2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00", AT], AT),
        ("naive datetime", ["2026-01-02T03:04:05", AT.replace(tzinfo=None)], AT.replace(tzinfo=None)),
        ("UUID", ["00000000-0000-0000-0000-000000000007", UUID(int=7)], str(UUID(int=7))),
        ("bytes", [b"x"], b"x"),
        ("bool", [None, msgspec.UNSET], None),
        ("json", [[1, {"a": None}]], [1, {"a": None}]),
    ],
)
def test_values(kind: str, values: list[Any], shown: Any) -> None:
    for value in values:
        found = shown_value(Field("x", kind), value)
        assert found == shown
        assert type(found) is type(shown)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "3"),
        ("int", True),
        ("str", 3),
        ("float", "2"),
        ("Decimal", "x"),
        ("date", 3),
        ("date", "x"),
        ("UUID", "x"),
    ],
)
def test_values_of_another_type(kind: str, value: Any) -> None:
    with pytest.raises(UnsupportedValue, match=f"column 'x' is of type {kind}, and a stored value is not"):
        shown_value(Field("x", kind), value)


def test_json() -> None:
    assert json_of({"b": {3, 1, 2}, "a": Decimal("1.0"), "c": b"\0", "d": float("nan"), "e": AT}) == (
        b'{"b":[1,2,3],"a":"1.0","c":"AA==","d":null,"e":"2026-01-02T03:04:05Z"}'
    )
    assert json_of({None: 1, (1, "x"): 2}) == b'{"null":1,"[1,\\"x\\"]":2}'
    with pytest.raises(UnsupportedValue, match="has no JSON form"):
        json_of(object())


def test_names_that_are_not_taken() -> None:
    assert unique_names(["key", "key_2"], {"key", "entity_key", "x"}, "entity_") == ["entity_entity_key", "key_2"]

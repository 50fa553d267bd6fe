"""Cursors that a client made up: none of them may stand for a place that no index has."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx import Index, Operator
from styx.errors import BadQuery
from styx.model.row_page import position_of
from styx.relational.table import Table


class Row(msgspec.Struct):
    id: int
    weight: float = 0.0
    price: Decimal = Decimal(0)
    rest: float | None = None


def declared() -> Table:
    indexes = [Index("by_weight", order="weight"), Index("by_price", order="price"), Index("by_rest", order="rest")]
    return Operator("shop").table("rows", Row, key="id", indexes=indexes)


def made_up(index: str, position: Any) -> str:
    return urlsafe_b64encode(msgspec.msgpack.encode([index, position])).decode().rstrip("=")


@pytest.mark.parametrize(
    ("index", "value"),
    [("by_weight", float("nan")), ("by_price", "NaN"), ("by_price", "sNaN"), ("by_rest", [float("nan")])],
    ids=repr,
)
def test_a_cursor_holds_no_nan(index: str, value: Any) -> None:
    table = declared()
    with pytest.raises(BadQuery, match="NaN, which has no place in an order"):
        position_of(table, table.index(index), made_up(index, [value, 1]))


def test_a_cursor_holds_every_value_with_an_order() -> None:
    table = declared()
    for index, value, place in [
        ("by_weight", float("-inf"), float("-inf")),
        ("by_price", "1.50", Decimal("1.5")),
        ("by_rest", [], ()),
        ("by_rest", [2.0], (2.0,)),
    ]:
        assert position_of(table, table.index(index), made_up(index, [value, 1])) == (place, 1)

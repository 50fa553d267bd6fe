"""Index columns decoded alone: the same values as of the whole row, for every form of row."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pytest

from styx.relational.index_decoder import index_decoder
from styx.relational.row_type import RowType


class Array(msgspec.Struct, array_like=True):
    first: str
    wide: dict[str, list[int]]
    price: Decimal
    at: datetime | None
    behind: str = "behind"


class Renamed(msgspec.Struct, rename="camel"):
    unit_price: Decimal = Decimal(0)
    is_open: bool = True
    other: list[str] = []


class Tagged(msgspec.Struct, tag=True, array_like=True):
    first: int
    second: str


class Lowered(msgspec.Struct):
    mail: str
    name: str

    def __post_init__(self) -> None:
        self.mail = self.mail.lower()


@dataclass
class Plain:
    count: Annotated[int, msgspec.Meta(ge=0)]
    text: str
    tags: list[str] = field(default_factory=list)


AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (Array("a", {"x": [1]}, Decimal("1.50"), AT), ["price", "at"]),
        (Array("a", {"x": [1]}, Decimal("1.50"), None), ["at", "first"]),
        (Array("a", {}, Decimal(1), None), ["behind"]),
        (Renamed(Decimal("2.25"), False, ["x"]), ["unit_price", "is_open"]),
        (Renamed(), ["unit_price", "is_open"]),
        (Tagged(1, "x"), ["second"]),
        (Lowered("A@B", "x"), ["mail"]),
        (Plain(1, "x", ["y"]), ["count"]),
        (Plain(1, "x", ["y"]), ["text", "count"]),
    ],
)
def test_columns_of_an_index_are_as_in_the_whole_row(row: Any, names: list[str]) -> None:
    row_type = RowType("table", type(row))
    data = msgspec.msgpack.encode(row)
    part, whole = (
        index_decoder(row_type, [row_type.columns[name] for name in names])(data),
        row_type.decode_columns(data),
    )
    assert [getattr(part, name) for name in names] == [getattr(whole, name) for name in names]


def test_a_row_of_an_earlier_version_gets_its_defaults() -> None:
    row_type = RowType("table", Array)
    data = msgspec.msgpack.encode(["a", {}, "1.5", None])
    assert index_decoder(row_type, [row_type.columns["behind"]])(data).behind == "behind"


def test_columns_that_an_index_does_not_have_are_not_decoded() -> None:
    row_type = RowType("table", Array)
    data = msgspec.msgpack.encode(["a", "no mapping", "1.5", None])
    assert index_decoder(row_type, [row_type.columns["price"]])(data).price == Decimal("1.5")


def test_what_fits_no_column_raises_as_the_whole_row_does() -> None:
    row_type = RowType("table", Plain)
    data = msgspec.msgpack.encode({"count": -1, "text": "x"})
    with pytest.raises(msgspec.ValidationError, match="count"):
        index_decoder(row_type, [row_type.columns["count"]])(data)

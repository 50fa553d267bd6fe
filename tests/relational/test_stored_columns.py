"""Indexes of row types with code of their own: they see what rows see, and never run it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec
import pytest
from msgspec import inspect

from styx import Index, Operator
from styx.relational.stored_columns import runs_code

RUNS: list[Any] = []


class Size(enum.Enum):
    SMALL = "s"


class Inner(msgspec.Struct):
    n: int = 0

    def __post_init__(self) -> None:
        RUNS.append(self)


T = TypeVar("T")


class Of(msgspec.Struct, Generic[T]):
    value: T

    def __post_init__(self) -> None:
        RUNS.append(self)


class WithOf(msgspec.Struct):
    n: int
    of: Of[int]


class AsMap(msgspec.Struct, rename="camel", tag="row"):
    row_id: int
    price: Decimal
    inner: Inner
    at: datetime
    size: Size | None = None
    code: Annotated[str, msgspec.Meta(min_length=1)] = "x"
    kind: Literal["a", "b"] = "a"
    day: date = date(2026, 1, 1)
    late: UUID | None = None


class AsArray(AsMap, array_like=True):
    pass


@dataclass
class AsData:
    row_id: int
    price: Decimal
    inner: Inner
    at: datetime
    size: Size | None = None
    code: str = field(default_factory=str)
    kind: str = "a"
    day: date = date(2026, 1, 1)
    late: UUID | None = None


@pytest.mark.parametrize("row_type", [AsMap, AsArray, AsData])
@pytest.mark.parametrize("price", [Decimal("0.10"), 0.1, "0.1", 3], ids=repr)
def test_an_index_sees_the_columns_of_the_row(row_type: Any, price: Any) -> None:
    names = ["price", "at", "size", "code", "kind", "day", "late"]
    indexes = [Index(f"by_{name}", order=name) for name in names]
    table = Operator("shop").table("rows", row_type, key="row_id", indexes=indexes)
    row = row_type(7, price, Inner(2), datetime(2026, 1, 1, tzinfo=UTC), Size.SMALL, "y", "b", date(2026, 2, 3))
    data = table.row_type.encode(row)
    back = table.row_type.decode(data)
    RUNS.clear()
    for index, name in zip(table.indexes[1:], names, strict=True):
        found = index.entry((1, 7), data, 4)
        assert found == ((1,), (table.columns[name].stored(getattr(back, name)), 7))
    assert not RUNS


class Old(msgspec.Struct):
    row_id: int
    inner: Inner


class New(Old):
    code: str = "x"


def test_columns_that_a_stored_row_lacks_have_their_defaults() -> None:
    table = Operator("shop").table("rows", New, key="row_id", indexes=Index("by_code", equal="code"))
    data = msgspec.msgpack.encode(Old(7, Inner()))
    assert table.indexes[1].entry((1, 7), data, 4) == ((1, "x"), (7,))


class Model:
    """As pydantic's, which msgspec leaves to a hook."""


@pytest.mark.parametrize(
    ("kind", "runs"),
    [(WithOf, True), (AsMap, True), (list[Inner], True), (Model, True), (dict[str, int], False), (Size, False)],
)
def test_which_types_have_code_of_their_own(kind: Any, runs: bool) -> None:
    assert runs_code(inspect.type_info(kind)) == runs

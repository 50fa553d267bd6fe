"""Rows from before a column get the default of the version that begins, for good."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, NotRequired, TypedDict

import msgspec
import pytest

from styx import App, Operator
from styx.model.limits import Limits
from styx.schema.completion import completed_rows
from styx.schema.conversion import conversion
from styx.values.codec import TypedState

encode, decode = msgspec.msgpack.encode, msgspec.msgpack.decode
OLD = {"id": 1}


class Struct(msgspec.Struct):
    id: int
    note: str = "a"
    tags: list[str] = []


@dataclass
class Data:
    id: int
    note: str = "a"
    tags: list[str] = field(default_factory=list)


class Array(msgspec.Struct, array_like=True):
    id: int
    note: str = "a"
    n: int = 7


class Tagged(msgspec.Struct, array_like=True, tag="t"):
    id: int
    note: str = "a"


class Renamed(msgspec.Struct, rename="camel"):
    id: int
    long_note: str = "a"


@dataclass
class Part:
    a: int
    b: int = 5


@dataclass
class Whole:
    id: int
    part: Part
    parts: list[Part] = field(default_factory=list)


class Pair(NamedTuple):
    part: Part
    more: Pair | None = None


class Entry(TypedDict):
    part: NotRequired[Part]


@dataclass
class Within:
    id: int
    pair: Pair | None = None
    entry: Entry | None = None


@dataclass
class Node:
    id: int
    below: Node | None = None
    note: str = "a"


@dataclass(slots=True)
class Slotted:
    id: int


@dataclass
class Unslotted(Slotted):
    note: str = "a"


@dataclass
class Coded:
    id: int
    note: str = "a"

    def __post_init__(self) -> None:
        self.note += "!"


@dataclass
class Wrong:
    id: int
    n: int = None  # type: ignore[assignment]  # the mistake that is tested


class Unset(msgspec.Struct):
    id: int
    note: str | msgspec.UnsetType = msgspec.UNSET
    n: int = 7


class TooLarge(msgspec.Struct):
    id: int
    note: str = "a"
    n: int = 2**70


class CodedArray(msgspec.Struct, array_like=True):
    id: int
    large: int = 2**70
    n: int = 7

    def __post_init__(self) -> None:
        self.n += 1


@dataclass
class Bare:
    id: int


def completed(row_type: Any, stored: Any) -> Any:
    """What is stored in the place of a row; None if it stays."""
    table = Operator("cart").table("rows", row_type, key="id")
    found = completed_rows(table, {("k", 1): encode(stored)}, {}).get(("k", 1))
    return None if found is None else decode(found)


@pytest.mark.parametrize(
    ("row_type", "stored", "whole"),
    [
        (Struct, OLD, {"id": 1, "note": "a", "tags": []}),
        (Data, OLD, {"id": 1, "note": "a", "tags": []}),
        (Data, {"id": 1, "tags": ["x"]}, {"id": 1, "note": "a", "tags": ["x"]}),
        (Data, {"id": 1, "note": "b", "tags": ["x"]}, None),
        (Array, [1], [1, "a", 7]),
        (Array, [1, "b"], [1, "b", 7]),
        (Array, [1, "b", 3], None),
        (Array, [1, "b", 3, "gone"], None),
        (Tagged, ["t", 1], ["t", 1, "a"]),
        (Renamed, OLD, {"id": 1, "longNote": "a"}),
        (Whole, {"id": 1, "part": {"a": 2}}, {"id": 1, "part": {"a": 2, "b": 5}, "parts": []}),
        (
            Whole,
            {"id": 1, "part": {"a": 2, "b": 3}, "parts": [{"a": 4}]},
            {"id": 1, "part": {"a": 2, "b": 3}, "parts": [{"a": 4, "b": 5}]},
        ),
        (
            Within,
            {"id": 1, "pair": [{"a": 1}, [{"a": 2}, None]], "entry": {"part": {"a": 3}}},
            {
                "id": 1,
                "pair": [{"a": 1, "b": 5}, [{"a": 2, "b": 5}, None]],
                "entry": {"part": {"a": 3, "b": 5}},
            },
        ),
        (Within, {"id": 1, "pair": None, "entry": {}}, None),
        (Node, {"id": 1, "below": {"id": 2}}, {"id": 1, "below": {"id": 2, "below": None, "note": "a"}, "note": "a"}),
        (Unslotted, OLD, {"id": 1, "note": "a"}),
        (Bare, {"id": 1, "gone": 7}, None),
        (Coded, OLD, {"id": 1, "note": "a"}),
        (Coded, {"id": 1, "note": "b"}, None),
        (Wrong, OLD, None),
        (Unset, OLD, {"id": 1, "n": 7}),
        (Unset, {"id": 1, "gone": 2}, {"id": 1, "n": 7, "gone": 2}),
        (TooLarge, OLD, None),
        (TooLarge, {"id": 1, "n": 3}, {"id": 1, "note": "a", "n": 3}),
        (CodedArray, [1], None),
        (Struct, {"id": "seven"}, None),
    ],
)
def test_a_row_gets_what_it_lacks(row_type: Any, stored: Any, whole: Any) -> None:
    assert completed(row_type, stored) == whole
    if whole is not None:
        assert completed(row_type, whole) is None, "once"


def test_what_the_type_does_not_have_stays_for_a_version_that_goes_back() -> None:
    assert completed(Struct, {"gone": [1], "id": 1}) == {"id": 1, "note": "a", "tags": [], "gone": [1]}


def test_what_is_completed_is_stored_as_a_row_that_is_put() -> None:
    table = Operator("cart").table("rows", Struct, key="id")
    (data,) = completed_rows(table, {("k", 1): encode(OLD)}, {}).values()
    assert data == table.row_type.encode(Struct(1))


def app_of(default: str) -> App:
    row_type = msgspec.defstruct("Row", [("id", int), ("note", str, default)])
    cart = Operator("cart")
    cart.table("rows", row_type, key="id").view("by_note", group_by="note")
    return App("shop", [cart])


def test_a_later_default_changes_no_row() -> None:
    tables: dict[str, dict[Any, bytes]] = {"cart/rows": {("k", 1): encode(OLD)}}
    first = conversion(app_of("a"), tables, Limits(), 1)
    assert decode(first.writes["cart/rows"]["k", 1] or b"") == {"id": 1, "note": "a"}
    assert list(first.writes["cart/<view by_note>"]) == [("k", "a")]
    after = {name: {key: data for key, data in rows.items() if data} for name, rows in first.writes.items()}
    assert not conversion(app_of("b"), after, Limits(), 1)


def test_what_migrate_gives_is_completed() -> None:
    def migrate(old: dict[str, Any]) -> Any:
        return Struct(old["id"])

    cart = Operator("cart")
    cart.table("rows", Struct, key="id", migrate=migrate)
    changed = conversion(App("shop", [cart]), {"cart/rows": {("k", 1): encode({"id": 1, "more": 1})}}, Limits(), 1)
    assert decode(changed.writes["cart/rows"]["k", 1] or b"") == {"id": 1, "note": "a", "tags": []}


def test_a_type_without_defaults_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Operator("cart").table("rows", Bare, key="id")
    monkeypatch.setattr(TypedState, "decode", None)
    assert completed_rows(table, {("k", 1): b"?"}, {}) == {}

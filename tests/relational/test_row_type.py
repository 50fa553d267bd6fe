"""Row types that are refused because a stored row would not keep its meaning."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Annotated, Any
from uuid import uuid4

import msgspec
import pytest

from styx import Index, Operator
from styx.errors import BadQuery, ConfigurationError


class Omitting(msgspec.Struct, omit_defaults=True):
    id: int
    cents: int = 0


class Holder(msgspec.Struct):
    id: int
    inner: list[Omitting] = []


@pytest.mark.parametrize("row_type", [Omitting, Holder])
def test_a_row_is_stored_with_its_defaults(row_type: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"Omitting of the row type .* has omit_defaults=True"):
        Operator("shop").table("rows", row_type, key="id")


@pytest.mark.parametrize(("kind", "factory"), [(str, lambda: str(uuid4())), (int, itertools.count().__next__)])
def test_a_default_is_the_same_whenever_it_is_made(kind: Any, factory: Any) -> None:
    row_type: Any = msgspec.defstruct("Made", [("id", int), ("token", kind, msgspec.field(default_factory=factory))])
    with pytest.raises(ConfigurationError, match=r"the default_factory of column 'token' gives another value.*uuid"):
        Operator("shop").table("rows", row_type, key="id")


class Part(msgspec.Struct, eq=False):
    n: int = 1


@dataclass
class Made:
    id: int
    tags: list[str] = field(default_factory=list)
    part: Part = field(default_factory=Part)


def test_a_factory_may_make_a_new_object() -> None:
    assert Operator("shop").table("rows", Made, key="id").columns


@dataclass
class Before:
    id: int


@dataclass
class After:
    id: int
    note: str | None = None
    cents: int = 5
    tags: list[str] = field(default_factory=list)


@dataclass(slots=True)
class AfterSlots:
    id: int
    note: str | None = None
    cents: int = 5


@dataclass
class Leaf:
    a: int
    b: int = 5


@dataclass
class Branch:
    leaf: Leaf | None = None
    more: list[Branch] = field(default_factory=list)
    n: int = 3


class Trunk(msgspec.Struct):
    leaf: Leaf


class Tree(msgspec.Struct):
    id: int
    leaf: Leaf
    perhaps: Leaf | None
    some: list[Leaf]
    by_name: dict[str, Leaf]
    two: tuple[int, Leaf]
    any_number: tuple[Leaf, ...]
    trunk: Trunk
    mixed: Annotated[int, msgspec.Meta(gt=0)] | list[Leaf]
    branch: Branch
    plain: list[int] = []


@dataclass
class Root:
    id: int
    leaf: Leaf
    n: int = 7


def test_objects_in_columns_get_the_defaults_that_they_lack() -> None:
    leaf, branch = {"a": 1}, {"leaf": {"a": 1}, "more": [{"leaf": {"a": 1}}]}
    old = {
        "id": 1,
        "leaf": leaf,
        "perhaps": leaf,
        "some": [leaf, leaf],
        "by_name": {"x": leaf},
        "two": [1, leaf],
        "any_number": [leaf],
        "trunk": {"leaf": leaf},
        "mixed": [leaf],
        "branch": branch,
    }
    table = Operator("shop").table("rows", Tree, key="id")
    for read in table.row_type.unpack, table.row_type.decode:
        row = read(msgspec.msgpack.encode(old))
        whole = msgspec.msgpack.decode(table.row_type.encode(row))
        full = {"a": 1, "b": 5}
        assert [whole["leaf"], whole["perhaps"], *whole["some"], whole["by_name"]["x"]] == [full] * 5
        assert [whole["two"][1], whole["any_number"][0], whole["trunk"]["leaf"], whole["mixed"][0]] == [full] * 4
        assert whole["branch"] == {"leaf": full, "more": [{"leaf": full, "more": [], "n": 3}], "n": 3}
    for other in ({"perhaps": None}, {"mixed": 4}):
        assert read(msgspec.msgpack.encode(old | other)).leaf == Leaf(1)


def test_a_row_and_the_objects_in_it_get_them() -> None:
    table = Operator("shop").table("rows", Root, key="id")
    row = table.row_type.decode(msgspec.msgpack.encode({"id": 1, "leaf": {"a": 1}}))
    stored = msgspec.msgpack.decode(table.row_type.encode(row))
    assert stored == {"id": 1, "leaf": {"a": 1, "b": 5}, "n": 7}


@pytest.mark.parametrize("row_type", [After, AfterSlots])
def test_a_row_from_before_a_column_is_stored_with_it_when_it_is_put_again(row_type: Any) -> None:
    table = Operator("shop").table("rows", row_type, key="id", indexes=Index("by_cents", order="cents"))
    old = Operator("shop").table("rows", Before, key="id").row_type.encode(Before(1))
    for read in table.row_type.unpack, table.row_type.decode:
        assert read(old) == row_type(1)
        assert table.row_type.encode(read(old)) == table.row_type.encode(row_type(1))
    assert table.indexes[1].entry((1, 1), old, 4) == ((1,), (5, 1))


class UnsetStruct(msgspec.Struct):
    id: int
    n: int | msgspec.UnsetType = msgspec.UNSET


@dataclass
class UnsetData:
    id: int
    n: Annotated[int | msgspec.UnsetType, msgspec.Meta(title="n")] = msgspec.UNSET


@pytest.mark.parametrize("declared", [UnsetStruct, UnsetData])
def test_a_column_that_allows_unset_has_no_order_and_no_sum(declared: Any) -> None:
    """UNSET would come to be compared, or added up, where a transaction commits: there the engine would end."""
    table: Any = Operator("cart").table("rows", declared, key="id")
    for given in ("sum", "min", "group_by"):
        with pytest.raises(ConfigurationError, match="column 'n' is of a type that allows UNSET"):
            table.view("view", **{given: "n"})
    with pytest.raises(ConfigurationError, match="column 'n' is of"):
        Operator("cart").table("rows", declared, key="n")
    with pytest.raises(ConfigurationError, match="column 'n' is of"):
        Operator("cart").table("rows", declared, key="id", indexes=[Index("by_n", order="n")])
    with pytest.raises(BadQuery, match="its type allows UNSET, to which nothing can be added"):
        table.increment({"n": 1})
    row = declared(1)
    assert table.row_type.decode(table.row_type.encode(row)) == row

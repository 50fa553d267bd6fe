"""Which index serves a query, the range that it reads, and what filters."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import Index, Operator, above, at_least, at_most, below, between, prefix
from styx.errors import BadQuery, MissingIndex
from styx.relational.index_range import TOP, IndexRange


class Row(msgspec.Struct):
    id: int
    a: int
    b: int
    c: str
    d: bytes
    n: int | None
    free: list[int]


TABLE = Operator("o").table(
    "rows",
    Row,
    key=("id", "a"),
    indexes=[
        Index("a", equal="a"),
        Index("ab", equal="a", order="b"),
        Index("b_c", order=("b", "c")),
        Index("c", order="c"),
        Index("d", order="d"),
        Index("n", order="n"),
    ],
)


def read(**conditions: Any) -> IndexRange:
    return TABLE.plan(conditions).range_of(("x",), conditions)


@pytest.mark.parametrize(
    ("conditions", "index", "group", "low", "high"),
    [
        ({}, "primary key", (), (), (TOP,)),
        ({"id": 5}, "primary key", (), (5,), (5, TOP)),
        ({"id": 5, "a": 1}, "primary key", (), (5, 1), (5, 1, TOP)),
        ({"a": 1}, "a", (1,), (), (TOP,)),
        ({"a": 1, "b": 2}, "ab", (1,), (2,), (2, TOP)),
        ({"b": above(2), "a": 1}, "ab", (1,), (2, TOP), (TOP,)),
        ({"b": at_least(2)}, "b_c", (), (2,), (TOP,)),
        ({"b": at_most(2)}, "b_c", (), (), (2, TOP)),
        ({"b": below(2)}, "b_c", (), (), (2,)),
        ({"b": 1, "c": between("x", "y")}, "b_c", (), (1, "x"), (1, "y", TOP)),
        ({"c": prefix("ab")}, "c", (), ("ab",), ("ac",)),
        ({"c": prefix("")}, "c", (), ("",), (TOP,)),
        ({"c": prefix("a\U0010ffff")}, "c", (), ("a\U0010ffff",), ("b",)),
        ({"d": prefix(b"a\xff")}, "d", (), (b"a\xff",), (b"b",)),
        ({"d": prefix(b"\xff")}, "d", (), (b"\xff",), (TOP,)),
        ({"n": None}, "n", (), ((),), ((), TOP)),
        ({"n": at_most(3)}, "n", (), ((), TOP), ((3,), TOP)),
        ({"n": at_least(3)}, "n", (), ((3,),), (TOP,)),
    ],
    ids=str,
)
def test_the_index_that_takes_most_serves(conditions: Any, index: str, group: Any, low: Any, high: Any) -> None:
    wanted = read(**conditions)
    assert (wanted.index.name, wanted.group, wanted.low, wanted.high) == (index, ("x", *group), low, high)


def test_the_rest_filters() -> None:
    plan = TABLE.plan({"a": 1, "c": prefix("x"), "free": [1]})
    assert plan.index.name == "a"
    assert [column.name for column in plan.filters] == ["c", "free"]


def test_what_no_index_serves_is_refused() -> None:
    table = Operator("o").table("bare", Row, key="id")
    with pytest.raises(MissingIndex) as raised:
        table.plan({"a": 1, "b": above(2), "free": [1]})
    told = str(raised.value)
    assert "table o/bare: no index serves the query (a=1, b=above(2), free=[1])" in told
    assert "declare Index(\"by_a_b\", equal='a', order='b'), or say scan=True" in told


def test_no_index_is_proposed_for_a_column_that_cannot_be_in_one() -> None:
    with pytest.raises(MissingIndex, match=r"no index serves the query \(free=\[1\]\): say scan=True"):
        TABLE.plan({"free": [1]})
    assert TABLE.plan({"free": [1]}, True).whole


def test_an_index_is_chosen_by_name() -> None:
    assert TABLE.plan({}, by="n").whole
    assert TABLE.plan({"b": 1, "c": "x"}, by="c").index.name == "c"
    with pytest.raises(MissingIndex, match=r"index 'a' does not serve the query \(b=1\): it needs a=…"):
        TABLE.plan({"b": 1}, by="a")
    with pytest.raises(MissingIndex, match="index 'ab' does not serve a query without conditions: it needs a=…"):
        TABLE.plan({}, True, by="ab")
    with pytest.raises(MissingIndex, match=r"index 'c' does not serve the query \(b=1\): declare Index"):
        TABLE.plan({"b": 1}, by="c")
    with pytest.raises(BadQuery, match="table o/rows has no index 'z'; it has: primary key, a, ab"):
        TABLE.plan({}, by="z")


def test_a_plan_is_kept_for_queries_of_the_same_form() -> None:
    assert TABLE.plan({"a": 1, "b": above(2)}) is TABLE.plan({"a": 3, "b": above(4)})
    assert TABLE.plan({"a": 1, "b": above(2)}) is not TABLE.plan({"a": 3, "b": below(4)})


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadQuery, match="table o/rows has no column 'z'; it has: id, a, b, c, d, n, free"):
        TABLE.plan({"z": 1})


def test_only_texts_and_bytes_have_a_prefix() -> None:
    with pytest.raises(BadQuery, match="column 'b' is of type int: only texts and bytes have a prefix"):
        read(b=prefix("1"))


@pytest.mark.parametrize("comparison", [at_least, above, at_most, below, prefix])
def test_none_is_no_bound(comparison: Any) -> None:
    with pytest.raises(BadQuery, match="`column=None` asks for None"):
        comparison(None)


def test_explain_says_what_is_read() -> None:
    told = TABLE.explain(a=1, b=above(2), free=[1])
    assert "reads the rows of the entity by index 'ab' with a=1, b=above(2)" in told
    assert "filters them by free: rows that do not meet this are read as well" in told
    assert "order: b, id, a" in told
    assert "reads all rows of the entity" in TABLE.explain(free=[1], scan=True)


class Named(msgspec.Struct):
    id: int
    last: str


def test_conditions_on_any_column_can_be_a_mapping() -> None:
    people = Operator("o").table("people", Named, key="id", indexes=Index("by_name", order="last"))
    assert "by index 'by_name' with last=prefix('A')" in people.explain({"last": prefix("A")})
    assert people.explain({"id": 1}, by="by_name", scan=True) == people.explain(by="by_name", scan=True, id=1)
    with pytest.raises(BadQuery, match="has no column 'first'; it has: id, last"):
        people.explain({"first": 1})
    with pytest.raises(BadQuery, match=r"one mapping such as .*: got 'last'"):
        people.explain("last")
    with pytest.raises(BadQuery, match=r"one mapping such as .*: got \{\}, \{\}"):
        people.explain({}, {})
    with pytest.raises(BadQuery, match="column 'id' has a condition in the mapping and one as a keyword"):
        people.explain({"id": 1}, id=1)


@pytest.mark.parametrize("what", [{"a": 1, "b": above("2")}, {"a": 1, "b": "2"}, {"a": 1, "id": 5, "b": below("2")}])
def test_values_of_another_type_are_refused_by_table_and_column(what: dict[str, Any]) -> None:
    """Whether the index takes the condition, or it filters rows, of which there may be none."""
    told = "table o/rows: column 'b' is of type int, and was compared with '2' of type str"
    with pytest.raises(BadQuery, match=told):
        TABLE.explain(what)
    with pytest.raises(BadQuery, match=told):
        TABLE.plan(what).range_of((7,), what)
    with pytest.raises(BadQuery, match="table o/rows: column 'b' is of type int: only texts and bytes"):
        TABLE.explain(a=1, id=5, b=prefix("x"))

"""Statements on rows, the keys that the engine makes, and what is refused before a constraint is asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import Check, Index, Operator, at_least
from styx.errors import (
    BadQuery,
    CheckViolation,
    ContextClosed,
    MissingIndex,
    NoSuchRow,
    OperationLimitExceeded,
    ReadOnlyViolation,
    RowExists,
    RowLimitExceeded,
    UniqueViolation,
    UnsupportedValue,
    ValueTooLarge,
)
from styx.model.limits import Limits
from tests.model.rows_in_memory import Person, Row, one_table
from tests.relational.memory import Memory, done


class Numbered(msgspec.Struct):
    text: str
    number: int = 0


class Named(msgspec.Struct):
    text: str
    id: str = ""


# One row ---------------------------------------------------------------------------------------------------


def test_insert_refuses_keeps_or_replaces_what_is_there() -> None:
    rows = one_table()
    assert done(rows.insert(Row(1))) == Row(1)
    assert done(rows.insert(Row(1, 2), on_conflict="keep")) == Row(1)
    assert done(rows.get(1)) == Row(1)
    assert done(rows.insert(Row(1, 2), on_conflict="replace")) == Row(1, 2)
    with pytest.raises(RowExists, match=r"row 1 of table shop/rows of shop\[1\] exists already: use put"):
        rows.insert(Row(1, 3))
    assert done(rows.get(1)) == Row(1, 2)
    with pytest.raises(BadQuery, match='on_conflict= is None, "keep" or "replace", got \'skip\''):
        rows.insert(Row(1), on_conflict="skip")


def test_update_changes_columns_of_a_row_that_is_there() -> None:
    rows = one_table()
    done(rows.insert(Row(1, 2, "x")))
    assert done(rows.update(1, a=3)) == Row(1, 3, "x") == done(rows.get(1))
    with pytest.raises(NoSuchRow, match="row 2 of table shop/rows"):
        rows.update(2, a=1)
    with pytest.raises(BadQuery, match="has no column 'z'; it has: id, a, b, parent"):
        rows.update(1, z=1)
    with pytest.raises(BadQuery, match="its primary key cannot be changed"):
        rows.update(1, id=2)
    with pytest.raises(UnsupportedValue, match="table shop/rows: a row"):
        rows.update(1, a="x")


def test_update_where_changes_what_select_gives() -> None:
    rows = one_table(
        indexes=[Index("by_a", equal="a"), Index("by_b", equal="b", unique=True)],
        checks=Check("small", lambda row: row.a < 9),
    )
    for number in range(6):
        done(rows.insert(Row(number, number % 2, str(number))))
    changed = done(rows.update_where({"a": 5, "parent": None}, a=1, b=at_least("2")))
    assert changed == [Row(3, 5, "3"), Row(5, 5, "5")] == done(rows.select(a=5))
    assert done(rows.update_where({"a": 7}, {"a": 1})) == [Row(1, 7, "1")]
    assert done(rows.update_where({"a": 1}, a=8)) == []
    with pytest.raises(CheckViolation):
        rows.update_where({"a": 9}, a=7)
    with pytest.raises(UniqueViolation):
        rows.update_where({"b": "x"}, a=5)
    with pytest.raises(BadQuery, match="its primary key cannot be changed"):
        rows.update_where({"id": 9}, a=7)
    with pytest.raises(BadQuery, match="has no column 'z'"):
        rows.update_where({"z": 9}, a=7)
    with pytest.raises(MissingIndex):
        rows.update_where({"a": 9}, parent=None)


@pytest.mark.parametrize("given", [(), ({},), (1,), ("a", {"b": 1})])
def test_update_where_begins_with_changes(given: tuple[Any, ...]) -> None:
    with pytest.raises(BadQuery, match=r"update_where begins with the changes, such as \{'column': value\}: got"):
        one_table().update_where(*given)


def test_delete_says_whether_the_row_was_there() -> None:
    rows = one_table()
    done(rows.insert(Row(1)))
    assert done(rows.delete(1)) is True
    assert done(rows.delete(1)) is False
    assert done(rows.get(1, "none")) == "none"


def test_delete_where_deletes_what_select_gives() -> None:
    rows = one_table(indexes=Index("by_a", equal="a"))
    for number in range(6):
        done(rows.insert(Row(number, number % 2)))
    assert done(rows.delete_where(a=1)) == 3
    assert done(rows.keys()) == [0, 2, 4]


@pytest.mark.parametrize("row", [None, {"id": 1}, Person(1)], ids=["None", "dict", "other"])
def test_only_rows_are_put(row: Any) -> None:
    rows = one_table()
    with pytest.raises(UnsupportedValue, match="table shop/rows takes rows of type Row, got"):
        rows.put(row)


# The engine's keys -----------------------------------------------------------------------------------------


def test_a_serial_key_is_the_entitys_next_number() -> None:
    operator = Operator("shop")
    table = operator.table("lines", Numbered, key="number", auto="serial")
    memory = Memory(operator)
    rows = memory.context(operator, "a").rows(table)
    assert [done(rows.insert(Numbered(text))).number for text in "xyz"] == [1, 2, 3]
    assert done(memory.context(operator, "b").rows(table).insert(Numbered("x"))).number == 1
    done(rows.delete(3))
    done(rows.put(Numbered("w")))
    assert done(rows.keys()) == [1, 2, 4]
    done(rows.put(Numbered("changed", 2)))
    assert done(rows.get(2)).text == "changed"


@pytest.mark.parametrize("statement", ["insert", "put", "keep", "replace"])
def test_numbers_go_on_behind_a_row_that_brings_its_own(statement: str) -> None:
    operator = Operator("shop")
    table = operator.table("lines", Numbered, key="number", auto="serial")
    rows = Memory(operator).context(operator, "a").rows(table)

    def bring(number: int) -> None:
        row = Numbered("brought", number)
        done(rows.put(row) if statement == "put" else rows.insert(row, None if statement == "insert" else statement))

    bring(5)
    assert done(rows.insert(Numbered("x"))).number == 6
    bring(3)
    bring(-2)
    assert done(rows.insert(Numbered("x"))).number == 7, "a lower number changes nothing"
    bring(8)
    assert done(rows.insert(Numbered("x"))).number == 9, "the next number is not met"
    bring(2**63 - 1)
    with pytest.raises(UnsupportedValue, match="has given its last number"):
        rows.insert(Numbered("x"))


def test_a_row_that_is_there_is_replaced_without_its_entitys_counter() -> None:
    operator = Operator("shop")
    table = operator.table("lines", Numbered, key="number", auto="serial")
    context = Memory(operator).context(operator, "a")
    rows = context.rows(table)
    done(rows.insert(Numbered("x")))
    left = context._left
    done(rows.put(Numbered("changed", 1)))
    assert left - context._left == 2, "the row is read and written"
    done(rows.put(Numbered("brought", 2)))
    assert left - context._left == 5, "the counter is read as well"


def test_a_unique_key_is_given_once() -> None:
    operator = Operator("shop")
    table = operator.table("events", Named, key="id", auto="unique")
    rows = Memory(operator).context(operator).rows(table)
    given = Named("x")
    ids = [done(rows.insert(given)).id for _ in range(3)]
    assert len(set(ids)) == 3
    assert all(len(each) == 26 for each in ids)
    assert given.id == ""
    assert done(rows.insert(Named("x", "mine"))).id == "mine"


# Limits and refusals ---------------------------------------------------------------------------------------


class Parameters(msgspec.Struct):
    """Its columns have the names of parameters of queries."""

    first: int
    by: str
    scan: bool = False
    size: int = 0
    where: int = 1


def test_conditions_on_columns_with_names_of_parameters() -> None:
    operator = Operator("shop")
    table = operator.table("odd", Parameters, key="first", indexes=Index("by", equal="by", order="size"))
    rows = Memory(operator).context(operator).rows(table)
    for number in range(6):
        done(rows.put(Parameters(number, "xy"[number % 2], number > 2, number)))
    where = {"by": "x", "size": at_least(1)}
    assert done(rows.keys(where)) == [2, 4]
    assert [row.first for row in done(rows.select(where, first=1))] == [2]
    assert done(rows.count(where, by="by")) == 2
    assert done(rows.keys(where, where=1)) == [2, 4]
    assert done(rows.keys(where=2, scan=True)) == []
    assert done(rows.exists(where | {"scan": True, "first": 2})) is False
    page = done(rows.pages(where, size=1))
    assert (page.rows[0].size, done(rows.pages(where, size=1, after=page.next)).rows[0].size) == (2, 4)
    assert done(rows.delete_where(where)) == 2
    assert done(rows.keys({}, scan=True)) == [0, 1, 3, 5]
    with pytest.raises(BadQuery, match=r"one mapping such as .*: got 5"):
        rows.select(5)


def test_a_query_reads_a_limited_number_of_rows() -> None:
    operator = Operator("shop")
    table = operator.table("rows", Row, key="id", indexes=Index("by_a", equal="a"))
    rows = Memory(operator, limits=Limits(rows_per_query_max=3)).context(operator).rows(table)
    for number in range(4):
        done(rows.insert(Row(number)))
    for query in (rows.select, rows.keys, lambda: rows.select(first=4), lambda: rows.select(last=4)):
        with pytest.raises(
            RowLimitExceeded, match=r"more than 3 rows of shop\[1\], which is Limits.rows_per_query_max"
        ):
            query()
    assert len(done(rows.select(first=3))) == 3
    assert len(done(rows.select(last=3))) == 3
    assert done(rows.count()) == 4
    assert done(rows.exists(a=0)) is True


def test_each_row_counts_as_an_operation() -> None:
    operator = Operator("shop")
    table = operator.table("rows", Row, key="id")
    rows = Memory(operator, limits=Limits(operations_max=20)).context(operator).rows(table)
    for number in range(5):
        done(rows.insert(Row(number)))  # a read and a write
    assert len(done(rows.select())) == 5
    assert rows._context._left == 4
    with pytest.raises(OperationLimitExceeded):
        rows.select()


def test_a_query_that_finds_nothing_may_be_the_last_operation() -> None:
    operator = Operator("shop")
    table = operator.table("rows", Row, key="id")
    rows = Memory(operator, limits=Limits(operations_max=1)).context(operator).rows(table)
    assert done(rows.select()) == []
    with pytest.raises(OperationLimitExceeded):
        rows.select()


def test_a_row_has_a_limited_size() -> None:
    operator = Operator("shop")
    table = operator.table("rows", Row, key="id")
    rows = Memory(operator, limits=Limits(value_bytes_max=100)).context(operator).rows(table)
    with pytest.raises(ValueTooLarge, match=r"row 1 of table shop/rows of shop\[1\] has 120 bytes"):
        rows.put(Row(1, b="x" * 100))


def test_an_error_that_is_caught_ends_the_transaction_as_well() -> None:
    rows = one_table()
    done(rows.insert(Row(1)))
    with pytest.raises(RowExists) as raised:
        rows.insert(Row(1))
    assert rows._context._doom is raised.value


def test_a_read_only_function_only_reads() -> None:
    operator = Operator("shop")
    table = operator.table("rows", Row, key="id")
    rows = Memory(operator).context(operator, read_only=True).rows(table)
    assert done(rows.select()) == []
    for method, write in {
        "insert": lambda: rows.insert(Row(1)),
        "put": lambda: rows.put(Row(1)),
        "update": lambda: rows.update(1, a=1),
        "update_where": lambda: rows.update_where({"a": 1}),
        "delete": lambda: rows.delete(1),
        "delete_where": rows.delete_where,
    }.items():
        with pytest.raises(ReadOnlyViolation, match=rf"used ctx.rows\(…\).{method}, but"):
            write()


def test_a_closed_context_refuses_everything() -> None:
    rows = one_table(indexes=Index("u", equal="a", unique=True))
    rows._context._close()
    for use in (
        lambda: rows.get(1),
        lambda: rows.find("u", 1),
        lambda: rows.insert(Row(1)),
        lambda: rows.put(Row(1)),
        lambda: rows.update(1, a=1),
        lambda: rows.update_where({"a": 1}),
        lambda: rows.delete(1),
        rows.delete_where,
        rows.select,
        rows.keys,
        rows.count,
        rows.exists,
        rows.pages,
        lambda: rows._context.rows(rows._table),
    ):
        with pytest.raises(ContextClosed):
            use()


def test_a_table_is_of_the_functions_own_operator_and_app() -> None:
    one, two = Operator("one"), Operator("two")
    table = one.table("rows", Row, key="id")
    memory = Memory(one, two)
    with pytest.raises(BadQuery, match="table one/rows belongs to operator 'one'"):
        memory.context(two).rows(table)
    stranger = Operator("one").table("rows", Row, key="id")
    with pytest.raises(BadQuery, match="table one/rows is not of the app 'shop': declare it before App"):
        memory.context(one).rows(stranger)
    with pytest.raises(BadQuery, match=r"ctx\.rows takes a table that operator.table"):
        memory.context(one).rows("rows")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"first": -1}, "first= is a number of rows, got -1"),
        ({"last": "1"}, "last= is a number of rows, got '1'"),
        ({"first": 1, "last": 1}, "first= and last= cannot stand together"),
    ],
    ids=["negative", "text", "both"],
)
def test_ends_are_numbers(given: Any, told: str) -> None:
    rows = one_table()
    with pytest.raises(BadQuery, match=told):
        rows.select(**given)


@pytest.mark.parametrize("cursor", ["", "x", "!!", 5, "kqhieV9wcmljZZKiOTQG"], ids=repr)
def test_a_cursor_is_one_of_the_query(cursor: Any) -> None:
    rows = one_table(indexes=Index("by_a", order="a"))
    with pytest.raises(BadQuery, match="cursor"):
        rows.pages(after=cursor)
    with pytest.raises(BadQuery, match="size= is the number of rows of a page"):
        rows.pages(size=0)


def test_a_cursor_outlives_its_row() -> None:
    rows = one_table(indexes=Index("by_b", order=("b", "a")))
    for number, text in enumerate(["x", None, "y", None, "x"]):
        done(rows.insert(Row(number, -number, text)))
    page = done(rows.pages(by="by_b", size=2))
    assert [row.id for row in page.rows] == [3, 1]
    done(rows.delete(1))
    done(rows.insert(Row(9, -9)))
    page = done(rows.pages(by="by_b", size=2, after=page.next))
    assert [row.id for row in page.rows] == [4, 0]
    with pytest.raises(BadQuery, match="is no cursor of a page of this query"):
        rows.pages(after=page.next)


def test_a_query_reads_no_more_than_it_asks_for() -> None:
    operator = Operator("shop")
    table = operator.table("rows", Row, key="id", indexes=Index("by_a", equal="a", unique=True))
    memory = Memory(operator)
    rows = memory.context(operator).rows(table)
    done(rows.insert(Row(1, 5)))
    asked = memory.ranges[-1]
    assert (asked.index, asked.group, asked.membership) == (table.indexes[1], (1, 5), True)
    done(rows.keys(a=5))
    assert memory.ranges[-1].membership
    done(rows.count(a=5))
    assert memory.ranges[-1].membership
    done(rows.exists(a=5))
    assert (memory.ranges[-1].membership, memory.ranges[-1].first) == (True, 1)
    done(rows.select(a=5, first=2))
    assert (memory.ranges[-1].membership, memory.ranges[-1].first) == (False, 2)

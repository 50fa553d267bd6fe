"""Statements on rows, and each constraint by itself: what it refuses, and what it lets pass."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx import Check, Index, Operator, Ref, at_least
from styx.errors import (
    BadQuery,
    CheckViolation,
    ContextClosed,
    MissingIndex,
    NoSuchRow,
    OperationLimitExceeded,
    ReadOnlyViolation,
    ReferenceViolation,
    RowExists,
    RowLimitExceeded,
    UniqueViolation,
    UnsupportedValue,
    ValueTooLarge,
)
from styx.model.limits import Limits
from tests.relational.memory import Memory, done


class Row(msgspec.Struct, frozen=True):
    id: int
    a: int = 0
    b: str | None = None
    parent: int | None = None


class Numbered(msgspec.Struct):
    text: str
    number: int = 0


class Named(msgspec.Struct):
    text: str
    id: str = ""


class Person(msgspec.Struct):
    id: int
    boss: int | None = None


def one_table(**declared: Any) -> Any:
    """The rows of an entity in a table with these constraints."""
    operator = Operator("shop")
    table = operator.table("rows", Row, key="id", **declared)
    return Memory(operator).context(operator).rows(table)


def family(on_delete: str, **children: Any) -> tuple[Any, Any]:
    """Rows of a parent's table, and of a child's that refers to it."""
    operator = Operator("shop")
    parents = operator.table("parents", Row, key="id")
    table = operator.table("rows", Row, key="id", references=Ref("parent", parents, on_delete), **children)
    ctx = Memory(operator).context(operator)
    return ctx.rows(parents), ctx.rows(table)


def each_of(*statements: Any) -> tuple[Any, ...]:
    return statements


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
    with pytest.raises(BadQuery, match="update_where begins with the changes, such as {'column': value}: got"):
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


# Checks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "name"), [(Row(1, -1), "first"), (Row(1, 6), "second"), (Row(1, 3), "third")])
def test_every_check_counts(row: Row, name: str) -> None:
    checks = [
        Check("first", lambda row: row.a >= 0),
        Check("second", lambda row: row.a < 5),
        Check("third", lambda row: row.a != 3),
    ]
    rows = one_table(checks=checks)
    done(rows.put(Row(1)))
    for statement in each_of(
        lambda: rows.put(row), lambda: rows.update(1, a=row.a), lambda: rows.insert(row, "replace")
    ):
        with pytest.raises(CheckViolation, match=f"does not meet the check '{name}'"):
            statement()
    assert done(rows.get(1)) == Row(1)


def test_what_a_check_raises_ends_the_transaction() -> None:
    rows = one_table(checks=Check("bad", lambda row: 1 // row.a))
    with pytest.raises(ZeroDivisionError):
        rows.put(Row(1))
    assert isinstance(rows._context._doom, ZeroDivisionError)


# Unique indexes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "index",
    [
        Index("u", equal="b", unique=True),
        Index("u", order="b", unique=True),
        Index("u", equal="a", order="b", unique=True),
        Index("u", order=("a", "b"), unique=True),
    ],
    ids=str,
)
def test_a_unique_index_has_each_value_once(index: Index) -> None:
    rows = one_table(indexes=index)
    done(rows.insert(Row(1, 5, "x")))
    done(rows.insert(Row(2, 5, "y")))
    for statement in each_of(
        lambda: rows.insert(Row(3, 5, "x")),
        lambda: rows.put(Row(3, 5, "x")),
        lambda: rows.put(Row(2, 5, "x")),
        lambda: rows.update(2, b="x"),
    ):
        with pytest.raises(UniqueViolation, match=r"1 has .*b='x' already, which is unique by index 'u'"):
            statement()
    done(rows.put(Row(1, 5, "x", 7)))  # its own place
    done(rows.update(1, b="z"))
    done(rows.update(2, b="x"))  # the place is free now
    done(rows.insert(Row(3, 5, None)))
    done(rows.insert(Row(4, 5, None)))  # None is not compared
    assert done(rows.count()) == 4


def test_find_reads_a_unique_index() -> None:
    rows = one_table(indexes=[Index("u", equal="a", order="b", unique=True), Index("other", equal="a")])
    done(rows.insert(Row(1, 5, "x")))
    assert done(rows.find("u", 5, "x")) == Row(1, 5, "x")
    assert done(rows.find("u", 5, "y")) is None
    assert done(rows.find("primary key", 1)) == Row(1, 5, "x")
    with pytest.raises(BadQuery, match=r"index 'other' is not unique: use select\(a=…\)"):
        rows.find("other", 5)
    with pytest.raises(BadQuery, match="index 'u' takes a, b, got 1 values"):
        rows.find("u", 5)


# References ------------------------------------------------------------------------------------------------


def test_a_row_refers_to_one_that_is_there() -> None:
    parents, rows = family("restrict")
    done(parents.insert(Row(1)))
    done(rows.insert(Row(10, parent=1)))
    done(rows.insert(Row(11)))  # refers to nothing
    for statement in each_of(
        lambda: rows.insert(Row(12, parent=2)),
        lambda: rows.put(Row(12, parent=2)),
        lambda: rows.update(10, parent=2),
    ):
        with pytest.raises(ReferenceViolation, match="refers by parent=2 to no row of shop/parents"):
            statement()
    done(rows.update(10, a=5))


def test_restrict_refuses_the_deletion() -> None:
    parents, rows = family("restrict")
    done(parents.insert(Row(1)))
    done(rows.insert(Row(10, parent=1)))
    with pytest.raises(
        ReferenceViolation, match=r"row 1 of table shop/parents .* cannot be deleted: row 10 of table shop"
    ):
        parents.delete(1)


def test_restrict_lets_a_parent_without_children_go() -> None:
    parents, rows = family("restrict")
    done(parents.insert(Row(1)))
    done(parents.insert(Row(2)))
    done(rows.insert(Row(10, parent=2)))
    assert done(parents.delete(1)) is True
    done(rows.delete(10))
    assert done(parents.delete(2)) is True


def test_cascade_deletes_the_children() -> None:
    parents, rows = family("cascade")
    for number in (1, 2):
        done(parents.insert(Row(number)))
        done(rows.insert(Row(number * 10, parent=number)))
    done(parents.delete(1))
    assert done(rows.keys()) == [20]


def test_set_null_changes_the_children() -> None:
    parents, rows = family("set_null")
    done(parents.insert(Row(1)))
    done(rows.insert(Row(10, 7, parent=1)))
    done(parents.delete(1))
    assert done(rows.get(10)) == Row(10, 7)


def test_what_set_null_makes_is_checked() -> None:
    parents, rows = family("set_null", checks=Check("has_parent", lambda row: row.parent is not None))
    done(parents.insert(Row(1)))
    done(rows.insert(Row(10, parent=1)))
    with pytest.raises(CheckViolation, match="has_parent"):
        parents.delete(1)


def test_set_default_needs_the_default_to_be_there() -> None:
    operator = Operator("shop")
    parents = operator.table("parents", Row, key="id")
    children = operator.table("rows", Row, key="id", references=Ref("a", parents, "set_default"))
    ctx = Memory(operator).context(operator)
    parent_rows, rows = ctx.rows(parents), ctx.rows(children)
    for number in (0, 1):
        done(parent_rows.insert(Row(number)))
    done(rows.insert(Row(10, 1)))
    done(parent_rows.delete(1))
    assert done(rows.get(10)) == Row(10, 0)
    with pytest.raises(ReferenceViolation, match="refers by a=0 to no row of shop/parents"):
        parent_rows.delete(0)


@pytest.mark.parametrize("on_delete", ["cascade", "restrict"])
def test_rows_may_refer_to_themselves_and_in_a_circle(on_delete: str) -> None:
    operator = Operator("firm")
    people = operator.table("people", Person, key="id", references=Ref("boss", "people", on_delete))
    rows = Memory(operator).context(operator).rows(people)
    done(rows.insert(Person(1, 1)))
    for number in (2, 3):
        done(rows.insert(Person(number, number - 1)))
    done(rows.update(1, boss=3))
    if on_delete == "restrict":
        with pytest.raises(ReferenceViolation):
            rows.delete(1)
    else:
        done(rows.delete(2))
        assert done(rows.keys()) == []


def test_rows_that_go_together_do_not_restrict_each_other() -> None:
    operator = Operator("firm")
    people = operator.table("people", Person, key="id", references=Ref("boss", "people"))
    rows = Memory(operator).context(operator).rows(people)
    for person in (Person(1), Person(2, 1), Person(3, 2)):
        done(rows.insert(person))
    assert done(rows.delete_where()) == 3


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
    with pytest.raises(ValueTooLarge, match="a row of table shop/rows of"):
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


def test_a_value_that_an_index_cannot_order_is_refused() -> None:
    class Measured(msgspec.Struct):
        id: int
        length: float
        at: datetime | None = None

    operator = Operator("shop")
    indexes = [Index("by_length", order="length"), Index("by_at", equal="at")]
    table = operator.table("rows", Measured, key="id", indexes=indexes)
    rows = Memory(operator).context(operator).rows(table)
    done(rows.put(Measured(1, 1.0, datetime(2026, 1, 1, tzinfo=UTC))))
    with pytest.raises(UnsupportedValue, match="table shop/rows, column 'length': NaN has no place in an order"):
        rows.put(Measured(1, float("nan")))
    with pytest.raises(UnsupportedValue, match=r"table shop/rows, column 'at': .* has no time zone"):
        rows.update(1, at=datetime(2026, 1, 1))  # noqa: DTZ001 - on purpose


class Priced(msgspec.Struct):
    id: int
    price: Decimal


def priced(**index: Any) -> Any:
    operator = Operator("shop")
    table = operator.table("rows", Priced, key="id", indexes=Index("an_index", **index))
    return Memory(operator).context(operator).rows(table)


@pytest.mark.parametrize("price", [0.1, "0.1", Decimal("0.10")], ids=repr)
def test_a_unique_value_is_the_one_that_is_stored(price: Any) -> None:
    rows = priced(equal="price", unique=True)
    done(rows.insert(Priced(1, price)))
    with pytest.raises(UniqueViolation, match="row 2 of"):
        rows.insert(Priced(2, price))
    done(rows.insert(Priced(3, Decimal(3))))
    with pytest.raises(UniqueViolation, match="row 3 of"):
        rows.update(3, price=price)


@pytest.mark.parametrize("price", [float("nan"), "NaN", Decimal("NaN")], ids=repr)
def test_a_stored_value_has_an_order_in_whatever_form_it_is_given(price: Any) -> None:
    rows = priced(order="price")
    done(rows.put(Priced(1, Decimal(1))))
    with pytest.raises(UnsupportedValue, match="price"):
        rows.put(Priced(2, price))
    with pytest.raises(UnsupportedValue, match="price"):
        rows.update(1, price=price)

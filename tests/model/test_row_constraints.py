"""Each constraint of a row by itself: what it refuses, and what it lets pass."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx import Check, Index, Operator, Ref
from styx.errors import (
    BadQuery,
    CheckViolation,
    ReferenceViolation,
    UniqueViolation,
    UnsupportedValue,
)
from tests.model.rows_in_memory import Person, Row, each_of, family, one_table
from tests.relational.memory import Memory, done

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


class Spare(msgspec.Struct):
    id: int
    place: int = 0
    name: str = ""
    group: int | None = None


def spares() -> Any:
    """Rows that go with one parent, and whose place becomes the default without the other one."""
    operator = Operator("shop")
    parents = operator.table("parents", Row, key="id")
    table = operator.table(
        "rows",
        Spare,
        key="id",
        indexes=Index("one", equal=("place", "name"), unique=True),
        references=[Ref("place", parents, "set_default"), Ref("group", parents, "cascade")],
    )
    ctx = Memory(operator).context(operator)
    for number in (0, 1):
        ctx.rows(parents).put(Row(number))
    return ctx.rows(parents), ctx.rows(table)


def test_what_is_set_is_unique() -> None:
    parents, rows = spares()
    done(rows.insert(Spare(1, 0, "a")))
    done(rows.insert(Spare(2, 1, "a")))
    with pytest.raises(UniqueViolation, match="row 2 of"):
        parents.delete(1)


def test_a_row_that_goes_is_in_no_ones_way() -> None:
    """Whichever reference was declared first."""
    parents, rows = spares()
    done(rows.insert(Spare(1, 0, "a", group=1)))
    done(rows.insert(Spare(2, 1, "a")))
    assert done(parents.delete(1))
    assert done(rows.select()) == [Spare(2, 0, "a")]


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


def test_rows_of_one_cascade_do_not_restrict_each_other() -> None:
    operator = Operator("firm")
    parents = operator.table("parents", Row, key="id")
    references = [Ref("group", parents, "cascade"), Ref("place", "rows")]
    table = operator.table("rows", Spare, key="id", references=references)
    ctx = Memory(operator).context(operator)
    done(ctx.rows(parents).put(Row(1)))
    for row in (Spare(1, 1, group=1), Spare(2, 1, group=1), Spare(3, 2, group=1)):
        done(ctx.rows(table).put(row))
    assert done(ctx.rows(parents).delete(1))
    assert done(ctx.rows(table).count()) == 0


# What is stored --------------------------------------------------------------------------------------------


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


class Mutable(msgspec.Struct):
    id: int
    code: str = "a"
    tags: list[str] = []


def _strips(row: Mutable) -> bool:
    row.code = row.code.strip()
    return True


def _collects(row: Mutable) -> bool:
    row.tags.append("seen")
    return True


@pytest.mark.parametrize(("change", "row"), [(_strips, Mutable(2, " a")), (_collects, Mutable(2, "b"))])
def test_a_check_only_looks_at_the_row(change: Any, row: Mutable) -> None:
    operator = Operator("shop")
    by_code = Index("by_code", equal="code", unique=True)
    table = operator.table("rows", Mutable, key="id", indexes=by_code, checks=Check("looks", change))
    memory = Memory(operator)
    with pytest.raises(CheckViolation, match="table shop/rows: the check 'looks' changed the row"):
        memory.context(operator).rows(table).insert(row)
    assert not memory.entries


def test_a_check_that_changes_nothing_may_assign() -> None:
    """Also where what was given is stored in another form than that of the row that is read."""
    operator = Operator("shop")
    check = Check("looks", _assigns)
    indexes = Index("by_price", equal="price", unique=True)
    table = operator.table("rows", Priced, key="id", indexes=indexes, checks=check)
    rows = Memory(operator).context(operator).rows(table)
    given: Any = 0.1
    done(rows.insert(Priced(1, given)))
    assert done(rows.get(1)) == Priced(1, Decimal("0.1"))


def _assigns(row: Priced) -> bool:
    row.price = row.price * 1
    return True

"""Which columns can be added to, and what may be added; and what `add` and `append` do to the rows of one entity."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pytest

from styx import Check, Index, Operator, Ref
from styx.errors import BadQuery, NoSuchRow, ReadOnlyViolation, ReferenceViolation, UniqueViolation, UnsupportedValue
from styx.model.consequence import Consequence
from tests.relational.memory import Memory, done


class Row(msgspec.Struct):
    id: int
    n: int = 0
    money: Decimal = Decimal(0)
    weight: float = 0.0
    maybe: int | None = None
    flag: bool = False
    positive: Annotated[int, msgspec.Meta(ge=0)] = 0
    either: int | str = 0


class Named(msgspec.Struct):
    text: str
    parent: int | None = None
    id: str = ""


class Careful(msgspec.Struct):
    id: int
    n: int = 0

    def __post_init__(self) -> None:
        assert self.n < 10


@dataclasses.dataclass
class Plain:
    id: int
    n: int = 0


def rows_of(row_type: Any = Row, *, read_only: bool = False, **declared: Any) -> Any:
    operator = Operator("shop")
    table = operator.table("rows", row_type, key="id", **declared)
    return Memory(operator).context(operator, read_only=read_only).rows(table)


def test_deltas_are_added_to_a_row_that_is_there() -> None:
    rows = rows_of()
    done(rows.insert(Row(1, 2, Decimal("1.50"), 0.5)))
    rows.add(1, n=-3, money=2, weight=1)
    rows.add(1, money=Decimal("0.25"))
    assert done(rows.get(1)) == Row(1, -1, Decimal("3.75"), 1.5)
    with pytest.raises(NoSuchRow, match=r"row 2 of table shop/rows of shop\[1\] does not exist: insert it before"):
        rows.add(2, n=1)


def test_a_dataclass_is_added_to() -> None:
    rows = rows_of(Plain)
    done(rows.insert(Plain(1)))
    rows.add(1, n=2)
    assert done(rows.get(1)) == Plain(1, 2)


@pytest.mark.parametrize(
    ("deltas", "told"),
    [
        ({}, "takes deltas by column"),
        ({"z": 1}, "has no column 'z'"),
        ({"id": 1}, "it is of the primary key, in which the row would move"),
        ({"maybe": 1}, "None has no sum: give it the default 0"),
        ({"either": 1}, "it is of more than one type"),
        ({"flag": 1}, "it is no int, Decimal or float"),
        ({"positive": 1}, "its type has the bound ge=0"),
        ({"n": 1.0}, "takes int, got 1.0 of type float"),
        ({"n": True}, "takes int, got True of type bool"),
        ({"n": 2**64}, "takes numbers of 64 bits"),
        ({"money": 1.5}, "takes Decimal or int, got 1.5 of type float"),
        ({"money": Decimal("Infinity")}, "takes finite numbers"),
        ({"weight": float("nan")}, "takes finite numbers, got nan"),
        ({"weight": 10**400}, "takes finite numbers"),
    ],
)
def test_what_cannot_be_added_is_refused_before_anything_is_written(deltas: dict[str, Any], told: str) -> None:
    rows = rows_of()
    done(rows.insert(Row(1)))
    with pytest.raises(BadQuery, match=told):
        rows.add(1, **{"n": 1, **deltas} if deltas else {})


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ({"indexes": Index("by_n", order="n")}, "it is of index 'by_n', in which the row would move; use get and upd"),
        ({"indexes": Index("far", equal="n", scope="partition")}, "it is of index 'far'"),
        ({"checks": Check("small", lambda row: row.n < 5)}, "the check 'small' would have to look at the sum"),
        ({"references": Ref("n", "rows")}, "it refers to a row of shop/rows"),
        ({"row_type": Careful}, "a look at a row runs code of Careful, which cannot run when a"),
    ],
)
def test_a_column_whose_new_value_matters_to_something_is_refused(declared: dict[str, Any], told: str) -> None:
    rows = rows_of(**declared)
    with pytest.raises(BadQuery, match=f"cannot add to column 'n' of table shop/rows: .*{told}"):
        rows.add(1, n=1)


def test_a_column_that_means_something_to_other_entities_is_refused() -> None:
    class Elsewhere(Consequence):
        def minds(self, column: str) -> bool:
            return column == "n"

    rows = rows_of()
    done(rows.insert(Row(1)))
    rows._table.consequences.append(Elsewhere())
    rows.add(1, weight=1)
    with pytest.raises(BadQuery, match="other entities have to know its value"):
        rows.add(1, n=1)


@pytest.mark.parametrize("method", ["add", "append"])
def test_a_read_only_function_adds_nothing(method: str) -> None:
    rows = rows_of(read_only=True)
    call: Callable[..., Any] = getattr(rows, method)
    with pytest.raises(ReadOnlyViolation, match=rf"rows\(…\).{method}"):
        call(1)


# append ------------------------------------------------------------------------------------------------------


def test_append_inserts_a_row_with_a_key_of_the_engine() -> None:
    rows = rows_of(Named, auto="unique")
    first, second = done(rows.append(Named("a"))), done(rows.append(Named("a")))
    assert first.text == "a"
    assert len(first.id) == len(second.id) == 26
    assert done(rows.keys()) == [first.id, second.id]


def test_append_checks_what_an_insert_checks() -> None:
    operator = Operator("shop")
    parents = operator.table("parents", Plain, key="id")
    table = operator.table(
        "rows", Named, key="id", auto="unique", indexes=Index("one", equal="text", unique=True),
        references=Ref("parent", parents),
    )  # fmt: skip
    rows = Memory(operator).context(operator).rows(table)
    done(rows.append(Named("a")))
    with pytest.raises(UniqueViolation):
        rows.append(Named("a"))
    rows = Memory(operator).context(operator).rows(table)
    with pytest.raises(ReferenceViolation):
        rows.append(Named("b", 7))


def test_append_is_refused_where_a_key_is_read_or_given() -> None:
    with pytest.raises(BadQuery, match=r'for tables with auto="unique".*the engine makes no keys for it; use insert'):
        rows_of().append(Row(1))
    with pytest.raises(BadQuery, match="a serial number is a read of the one before"):
        rows_of(auto="serial", row_type=_Numbered).append(_Numbered())
    with pytest.raises(BadQuery, match="the row has one already: leave id= out, or use insert"):
        rows_of(Named, auto="unique").append(Named("a", id="mine"))
    with pytest.raises(UnsupportedValue, match="takes rows of type Named"):
        rows_of(Named, auto="unique").append(Row(1))


class _Numbered(msgspec.Struct):
    id: int = 0


def test_a_column_that_a_view_counts_is_refused() -> None:
    operator = Operator("shop")
    table = operator.table("rows", Row, key="id")
    table.view("by_n", group_by="n", sum="money")
    other = operator.table("others", Row, key="id")
    other.view("heavy", where=lambda row: row.weight > 5)
    rows = Memory(operator).context(operator).rows(table)
    done(rows.insert(Row(1)))
    rows.add(1, weight=1)
    for column in ("n", "money"):
        with pytest.raises(BadQuery, match="view 'by_n' has to know its value"):
            table.increment({column: 1})
    with pytest.raises(BadQuery, match="view 'heavy' has to know its value"):
        other.increment({"weight": 1})

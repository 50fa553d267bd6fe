"""Least and greatest values of a view: the order of what is ranked, and what a function reads of it."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Any
from uuid import UUID

import msgspec
import pytest

from styx import ConfigurationError, Operator
from styx.errors import BadQuery, UnsupportedValue
from styx.model.limits import RANKINGS_PER_VIEW_MAX
from styx.relational.ranking import Ranking
from tests.relational.memory import Memory, done


class Size(Enum):
    SMALL = 1
    LARGE = 2


class Row(msgspec.Struct):
    id: int
    shelf: str = "s"
    n: int | None = 0
    price: Decimal | None = Decimal(0)
    weight: float = 0.0
    name: str = ""
    day: date = date(2026, 1, 1)
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    size: Size = Size.SMALL
    key: UUID = UUID(int=0)
    open: bool = True
    tags: list[str] = []
    data: bytes = b""
    min_n: int = 0


ENDS: dict[str, Any] = {"group_by": "shelf", "min": ("n", "price"), "max": ("n", "price")}


class Shop:
    """One entity with a table of rows and a view of it."""

    def __init__(self, **view: Any) -> None:
        self.operator = Operator("shop", key_type=int)
        self.table: Any = self.operator.table("rows", Row, key="id")
        self.view: Any = self.table.view("ends", **view)
        self.memory = Memory(self.operator)

    def rows(self) -> Any:
        return self.memory.context(self.operator).rows(self.table)

    def groups(self) -> Any:
        return self.memory.context(self.operator).rows(self.view)


def ranking(column: str) -> Ranking:
    (found,) = Shop(min=column).view.view_rule.rankings
    assert isinstance(found, Ranking)
    return found


def test_the_next_value_takes_the_place_of_one_that_goes() -> None:
    shop = Shop(**ENDS)
    for id, n in enumerate((5, 3, 9, 3)):
        done(shop.rows().insert(Row(id, n=n, price=Decimal(n) / 4)))

    def ends() -> tuple[Any, ...]:
        group = done(shop.groups().get("s"))
        return group.min_n, group.max_n, group.min_price, group.max_price

    assert ends() == (3, 9, Decimal("0.75"), Decimal("2.25"))
    done(shop.rows().delete(1))
    assert ends() == (3, 9, Decimal("0.75"), Decimal("2.25")), "another row has it"
    done(shop.rows().delete(3))
    assert ends() == (5, 9, Decimal("1.25"), Decimal("2.25"))
    done(shop.rows().update(2, n=1))
    assert ends() == (1, 5, Decimal("1.25"), Decimal("2.25"))
    done(shop.rows().update(2, price=None, n=None))
    assert ends() == (5, 5, Decimal("1.25"), Decimal("1.25"))
    done(shop.rows().update(0, shelf="t"))
    assert ends() == (None, None, None, None)
    assert [(group.shelf, group.count) for group in done(shop.groups().select())] == [("s", 1), ("t", 1)]
    done(shop.rows().delete_where())
    assert not shop.memory.entries


def test_a_group_is_read_with_its_ends_however_it_is_asked_for() -> None:
    shop = Shop(**ENDS)
    for id in range(4):
        done(shop.rows().insert(Row(id, "st"[id % 2], id)))
    groups = shop.groups()
    assert [group.max_n for group in done(groups.select())] == [2, 3]
    assert [group.min_n for group in done(groups.select(shelf="t"))] == [1]
    assert [group.shelf for group in done(groups.select(max_n=3, scan=True))] == ["t"]
    page = done(groups.pages(size=1))
    assert [group.max_n for group in page.rows] == [2]
    assert [group.max_n for group in done(groups.pages(size=1, after=page.next)).rows] == [3]
    assert done(groups.get("none")).min_n is None
    assert done(groups.keys()) == ["s", "t"]


def test_rows_that_do_not_count_have_no_ends() -> None:
    shop = Shop(where=lambda row: row.n < 5, max="n")
    done(shop.rows().insert(Row(1, n=4)))
    done(shop.rows().insert(Row(2, n=9)))
    assert done(shop.groups().get(())).max_n == 4
    done(shop.rows().update(1, n=7))
    assert done(shop.groups().get(())).max_n is None


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("n", [-(2**63), -1, 0, 7, 2**63 - 1]),
        ("name", ["", "A", "a", "ab", "ä", "\U0001f600"]),
        ("day", [date(1, 1, 1), date(2026, 1, 1), date(9999, 12, 31)]),
        ("at", [datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]),
        ("size", [Size.SMALL, Size.LARGE]),
        ("key", [UUID(int=1), UUID(int=2**127)]),
        ("open", [False, True]),
        ("weight", [-math.inf, -1e300, -1.5, -1e-320, 0.0, 5e-324, 0.1, 1, 1e308, math.inf]),
        (
            "price",
            [Decimal(text) for text in ("-1E39", "-100", "-12.5", "-12", "-1.25", "-1.2", "-0.01", "-1E-40", "0")]
            + [Decimal(text) for text in ("1E-40", "0.009", "0.01", "1", "1.2", "1.25", "12", "99", "100", "9.9E39")],
        ),
    ],
)
def test_values_are_ranked_in_their_order_and_come_back(column: str, values: list[Any]) -> None:
    one = ranking(column)
    parts = [one.part(value) for value in values]
    assert parts == sorted(parts)
    assert len({*parts}) == len(parts)
    assert [one.value(part) for part in parts] == values
    shop = Shop(min=column, max=column)
    for id, value in enumerate(Random(1).sample(values, len(values))):
        done(shop.rows().insert(Row(id, **{column: value})))
    group = done(shop.groups().get(()))
    assert getattr(group, f"min_{column}") == values[0]
    assert getattr(group, f"max_{column}") == values[-1]


def test_random_decimals_are_ranked_as_they_compare() -> None:
    one, random = ranking("price"), Random(7)
    values = [
        Decimal((random.randrange(2), tuple(random.choices(range(10), k=random.randint(1, 30))), -random.randrange(20)))
        for _ in range(2_000)
    ]
    ordered = sorted(values)
    assert sorted(map(one.part, values)) == [one.part(value) for value in ordered]
    assert [one.value(one.part(value)) for value in values] == values


def test_equal_numbers_have_one_place() -> None:
    one = ranking("price")
    assert one.part(Decimal("9.50")) == one.part(Decimal("9.5"))
    assert one.part(Decimal("-0.00")) == one.part(Decimal(0))
    assert str(one.value(one.part(Decimal("1E+2")))) == "100"
    assert ranking("weight").part(-0.0) == ranking("weight").part(0.0)


@pytest.mark.parametrize(
    "change",
    [
        {"price": Decimal(text)}
        for text in ("NaN", "Infinity", "1E40", "1E-41", "123.00000000000000000000000000000000000000001")
    ]
    + [{"weight": math.nan}, {"name": "x" * 3_000}, {"n": 2**63}],
)
def test_what_has_no_place_in_the_order_is_refused(change: dict[str, Any]) -> None:
    (column,) = change
    shop = Shop(min=column)
    with pytest.raises(UnsupportedValue, match="view 'ends' of table shop/rows: "):
        done(shop.rows().insert(Row(1, **change)))


def test_a_ranked_column_cannot_be_added_to() -> None:
    shop = Shop(max="weight")
    with pytest.raises(BadQuery, match="view 'ends' has to know its value"):
        shop.rows().add(1, weight=1.0)


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"min": "gone"}, "min=: the row type has no column 'gone'"),
        ({"max": "tags"}, "max=: column 'tags' is of a type without an order"),
        ({"max": "data"}, "max=: column 'data' is of bytes"),
        ({"min": ("n", "n")}, "min= has the column 'n' twice"),
        ({"min": "n", "group_by": "min_n"}, "the view has a column 'min_n' for an end of 'n'"),
        ({"min": "n", "sum": "min_n"}, "the view has a column 'min_n' for an end of 'n'"),
        ({"min": ("n", "price", "weight"), "max": ("day", "at")}, "5 columns are in min= and max=; the limit is 4"),
        ({"min": 7}, "min=: the row type has no column 7"),
    ],
)
def test_what_is_wrong_is_said(declared: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        Shop(**declared)
    assert why in str(told.value)
    assert RANKINGS_PER_VIEW_MAX == 4

"""Views: what one row gives to them, what a change of a row adds, and their rows as functions see them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec
import pytest

from styx import Operator, Ref
from styx.errors import BadQuery, ReadOnlyViolation, UnsupportedValue
from styx.relational import view as view_module
from styx.relational.increment import incremented
from styx.relational.view import Share
from tests.plain_form import plain_form
from tests.relational.memory import Memory, done


class Status(Enum):
    OPEN = "open"
    SENT = "sent"


class Order(msgspec.Struct):
    id: int
    seller: str | None = "s"
    status: Status = Status.OPEN
    cents: int | None = 0
    freight: Decimal = Decimal(0)
    at: datetime | None = None


class Shop:
    """One entity with a table of orders, two views of it, and a table of lines that go with their orders."""

    def __init__(self) -> None:
        self.operator = Operator("shop", key_type=int)
        self.orders: Any = self.operator.table("orders", Order, key="id")
        self.open: Any = self.orders.view(
            "open", group_by=("seller", "status"), where=lambda row: row.cents != 13, sum=("cents", "freight")
        )
        self.all: Any = self.orders.view("all", sum="freight")
        self.lines: Any = self.operator.table(
            "lines", Order, key="id", references=Ref("cents", self.orders, on_delete="cascade")
        )
        self.lined: Any = self.lines.view("lined")
        self.memory = Memory(self.operator)

    def rows(self, table: Any, **how: Any) -> Any:
        return self.memory.context(self.operator, **how).rows(table)

    def read(self, view: Any) -> list[tuple[Any, ...]]:
        return [msgspec.structs.astuple(row) for row in done(self.rows(view).select())]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_rows_are_counted_and_added_up_by_group(shop: Shop) -> None:
    orders = shop.rows(shop.orders)
    done(orders.insert(Order(1, "s", cents=5, freight=Decimal("0.10"))))
    done(orders.insert(Order(2, "s", cents=None, freight=Decimal("0.2"))))
    done(orders.insert(Order(3, "s", Status.SENT, 7)))
    assert shop.read(shop.open) == [("s", Status.OPEN, 2, 5, Decimal("0.30")), ("s", Status.SENT, 1, 7, Decimal(0))]
    assert shop.read(shop.all) == [(3, Decimal("0.30"))]


def test_every_statement_keeps_the_view(shop: Shop) -> None:
    orders = shop.rows(shop.orders)
    orders.put(Order(1, cents=5))
    orders.put(Order(1, cents=6))
    done(orders.insert(Order(1, cents=7), on_conflict="replace"))
    assert shop.read(shop.open) == [("s", Status.OPEN, 1, 7, 0)]
    done(orders.update(1, seller="t"))
    assert shop.read(shop.open) == [("t", Status.OPEN, 1, 7, 0)]
    done(orders.update(1, cents=13))
    assert shop.read(shop.open) == [], "where= says that it does not count, and its group is empty"
    done(orders.update(1, cents=1))
    orders.put(Order(2, cents=2))
    assert shop.read(shop.open) == [("s", Status.OPEN, 1, 2, 0), ("t", Status.OPEN, 1, 1, 0)]
    done(orders.delete(1))
    done(orders.delete_where(scan=True, seller="s"))
    assert shop.read(shop.open) == shop.read(shop.all) == []
    assert not [table for table, _ in shop.memory.entries if "view" in table]


def test_a_cascade_keeps_the_views_of_the_rows_that_it_deletes(shop: Shop) -> None:
    done(shop.rows(shop.orders).insert(Order(1)))
    done(shop.rows(shop.lines).insert(Order(7, cents=1)))
    assert shop.read(shop.lined) == [(1,)]
    done(shop.rows(shop.orders).delete(1))
    assert shop.read(shop.lined) == []


def test_a_row_with_none_in_a_column_of_the_group_is_in_no_group(shop: Shop) -> None:
    done(shop.rows(shop.orders).insert(Order(1, None)))
    assert shop.read(shop.open) == []
    assert shop.read(shop.all) == [(1, Decimal(0))]


def test_a_change_that_matters_to_no_view_writes_no_group(shop: Shop) -> None:
    orders = shop.rows(shop.orders)
    done(orders.insert(Order(1)))
    before = {at: data for at, data in shop.memory.entries.items() if "view" in at[0]}
    done(orders.update(1, at=datetime(2026, 1, 1)))  # noqa: DTZ001 - the column is in no index
    after = {at: data for at, data in shop.memory.entries.items() if "view" in at[0]}
    assert all(after[at] is data for at, data in before.items())


def test_what_a_change_of_a_row_adds() -> None:
    operator = Operator("shop", key_type=int)
    orders: Any = operator.table("orders", Order, key="id")
    view = orders.view("v", group_by="seller", sum=("cents", "freight")).view_rule
    row = Order(1, "s", cents=5, freight=Decimal(2))
    assert view.shares(None, row) == [Share(("s",), (1, 5, Decimal(2)))]
    assert view.shares(row, None) == [Share(("s",), (-1, -5, Decimal(-2)))]
    assert view.shares(row, Order(1, "s", cents=7, freight=Decimal("2.5"))) == [Share(("s",), (0, 2, Decimal("0.5")))]
    assert view.shares(row, Order(1, "s", cents=None, freight=Decimal(2))) == [Share(("s",), (0, -5, Decimal(0)))]
    assert view.shares(Order(1, "s", cents=None), Order(1, "s", cents=0)) == []
    assert view.shares(Order(1, None), Order(1, None, cents=7)) == []
    assert view.shares(row, Order(1, None)) == [Share(("s",), (-1, -5, Decimal(-2)))]
    assert view.shares(row, Order(1, "t")) == [Share(("s",), (-1, -5, Decimal(-2))), Share(("t",), (1, 0, Decimal(0)))]
    with pytest.raises(UnsupportedValue, match="is too large"):
        view.shares(row, Order(1, "s", cents=2**43 + 1))


@plain_form
def test_more_groups_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view_module, "GROUPS_KEPT_MAX", 2)
    shop = Shop()
    for seller in "abcab":
        shop.rows(shop.orders).put(Order(ord(seller), seller, cents=1))
    assert [row[0] for row in shop.read(shop.open)] == ["a", "b", "c"]


def test_a_group_without_rows_is_read_as_zeros(shop: Shop) -> None:
    rows = shop.rows(shop.open, read_only=True)
    assert msgspec.structs.astuple(done(rows.get(("s", Status.SENT)))) == ("s", Status.SENT, 0, 0, Decimal(0))
    assert done(rows.get(("s", Status.SENT), "none")) == "none"
    assert msgspec.structs.astuple(done(shop.rows(shop.all).get(()))) == (0, Decimal(0))
    assert done(rows.count()) == 0


def test_views_count_what_is_stored(shop: Shop) -> None:
    """A float in a column of Decimals is stored as the Decimal that it is read as."""
    done(shop.rows(shop.orders).insert(Order(1, freight=0.1)))  # type: ignore[arg-type]
    assert shop.read(shop.all) == [(1, Decimal("0.1"))]
    done(shop.rows(shop.orders).delete(1))
    assert shop.read(shop.all) == []


def test_sums_of_decimals_are_exact(shop: Shop) -> None:
    large, small = Decimal(10) ** 39, Decimal(10) ** -40
    orders = shop.rows(shop.orders)
    for id, freight in enumerate((large, small, small)):
        done(orders.insert(Order(id, freight=freight)))
    assert shop.read(shop.all) == [(3, Decimal(f"1{'0' * 39}.{'0' * 39}2"))]
    done(orders.delete(0))
    assert shop.read(shop.all) == [(2, 2 * small)]


def test_no_digit_is_lost_when_a_row_goes(shop: Shop) -> None:
    orders = shop.rows(shop.orders)
    long = Decimal("1234567890123456789012345678901234567.0987654321")
    done(orders.insert(Order(1, freight=long)))
    done(orders.insert(Order(2, freight=long.copy_negate())))
    assert shop.read(shop.all) == [(2, 0)]
    done(orders.delete(1))
    assert shop.read(shop.all) == [(1, long.copy_negate())]
    done(orders.update(2, freight=long))
    assert shop.read(shop.all) == [(1, long)]
    done(orders.delete(2))
    assert shop.read(shop.all) == []


@pytest.mark.parametrize("freight", ["NaN", "Infinity", "1E+40", "1E-41"])
def test_what_cannot_be_added_up_is_refused(shop: Shop, freight: str) -> None:
    with pytest.raises(UnsupportedValue, match=r"view 'open' of table shop/orders: column 'freight' is added up"):
        done(shop.rows(shop.orders).insert(Order(1, freight=Decimal(freight))))


def test_a_number_that_might_make_a_sum_too_large_is_refused(shop: Shop) -> None:
    orders = shop.rows(shop.orders)
    done(orders.insert(Order(1, cents=-(2**43))))
    with pytest.raises(UnsupportedValue, match=r"column 'cents' is added up, and 8796093022209 is too large"):
        done(orders.insert(Order(2, cents=2**43 + 1)))


def test_columns_that_a_view_looks_at_cannot_be_added_to(shop: Shop) -> None:
    with pytest.raises(BadQuery, match="cannot add to column 'freight' of table shop/orders: view 'open' has to know"):
        shop.rows(shop.orders).add(1, freight=1)


def test_what_where_raises_ends_the_statement() -> None:
    operator = Operator("shop", key_type=int)
    orders: Any = operator.table("orders", Order, key="id")
    orders.view("odd", where=lambda row: 1 // row.cents)
    with pytest.raises(ZeroDivisionError):
        done(Memory(operator).context(operator).rows(orders).insert(Order(1)))


def test_what_where_does_within_a_row_is_lost() -> None:
    class Tagged(msgspec.Struct):
        id: int
        tags: list[str]

    operator = Operator("shop", key_type=int)
    tagged: Any = operator.table("tagged", Tagged, key="id")
    tagged.view("all", where=lambda row: row.tags.append("seen") or True)
    given = Tagged(1, ["new"])
    done(Memory(operator).context(operator).rows(tagged).insert(given))
    assert given.tags == ["new"]


def test_what_where_does_to_a_row_is_lost() -> None:
    def where(row: Order) -> bool:
        row.cents, row.seller = 99, "x"
        return True

    operator = Operator("shop", key_type=int)
    orders: Any = operator.table("orders", Order, key="id")
    view = orders.view("all", group_by="seller", where=where, sum="cents")
    memory = Memory(operator)
    done(memory.context(operator).rows(orders).insert(Order(1, "s", cents=5)))
    (group,) = done(memory.context(operator).rows(view).select())
    assert (group.seller, group.cents) == ("s", 5)


def test_the_engine_alone_writes_a_view(shop: Shop) -> None:
    row = done(shop.rows(shop.all).get(()))
    writes: list[Any] = [
        lambda rows: rows.insert(row),
        lambda rows: rows.put(row),
        lambda rows: rows.update((), count=1),
        lambda rows: rows.delete(()),
        lambda rows: rows.delete_where(),
    ]
    for write in writes:
        with pytest.raises(BadQuery, match=r"view 'all' of table shop/orders is kept by the engine"):
            write(shop.rows(shop.all))
        with pytest.raises(ReadOnlyViolation):
            write(shop.rows(shop.orders, read_only=True))


def test_a_group_whose_count_is_0_amid_a_transaction_keeps_its_sum(shop: Shop) -> None:
    """Calls to a group of another entity need not run in the order of the changes."""
    view = shop.all.view_rule
    zero = shop.all.row_type.encode(view.nothing(()))
    data = incremented(zero, [view.increment(Share((), (1, Decimal(5))))])
    out_of_order = [(-1, Decimal(-7)), (1, Decimal(3)), (0, Decimal(2))]
    data = incremented(data, [view.increment(Share((), values)) for values in out_of_order])
    assert data == shop.all.row_type.encode(view.group_row(Share((), (1, Decimal(3)))))
    assert incremented(data, [view.increment(Share((), (-1, Decimal(-3))))]) is None

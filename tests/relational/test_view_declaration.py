"""Declarations of views: what they give, and what is wrong with them, said all at once."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

import msgspec
import pytest

import styx
from styx import ConfigurationError, Operator, Ref
from styx.errors import BadArguments


class Order(msgspec.Struct):
    id: int
    seller: str
    at: Annotated[datetime, msgspec.Meta(tz=False)]
    cents: Annotated[int, msgspec.Meta(gt=0)] | None
    price: Decimal
    weight: float
    tags: list[str]
    count: int = 0


def orders_of(operator: Operator | None = None) -> Any:
    return (operator or Operator("shop")).table("orders", Order, key="id")


def test_a_view_is_a_table_of_its_groups() -> None:
    view = orders_of().view("open", group_by=["seller", "at"], sum=["cents", "price"])
    assert view.full_name == "shop/<view open>"
    assert list(view.columns) == ["seller", "at", "count", "cents", "price"]
    assert [column.name for column in view.key] == ["seller", "at"]
    assert msgspec.structs.astuple(view.view_rule.nothing(("a", 0)))[2:] == (0, 0, Decimal(0))


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"group_by": "buyer"}, "group_by=: the row type has no column 'buyer'; it has: id, seller"),
        ({"group_by": "tags"}, "group_by=: column 'tags' is of a type without an order"),
        ({"group_by": "price"}, "groups are made of str, int"),
        ({"group_by": ("seller", "seller")}, "group_by= has the column 'seller' twice"),
        ({"sum": "weight"}, "column 'weight' is a float, and what was added cannot be taken away exactly"),
        ({"sum": "seller"}, "int and Decimal can be added up"),
        ({"sum": "id", "group_by": "id"}, "column 'id' is in group_by= and in sum="),
        ({"sum": "count"}, "rename the column 'count' of the table"),
        ({"where": "open"}, "where= is a plain function of a row, got 'open'"),
        ({"where": lambda: True}, "where= is a plain function of a row, got"),
        ({"count": False}, "a view always counts"),
        ({"scope": "cluster"}, "scope= is one of entity"),
        (
            {"group_by": "x", "sum": "weight"},
            "no column 'x'; it has: id, seller, at, cents, price, weight, tags, count; ",
        ),
    ],
)
def test_what_is_wrong_is_said(declared: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        orders_of().view("open", **declared)
    assert "view 'open' of table shop/orders: " in str(told.value)
    assert why in str(told.value)


def test_names() -> None:
    operator = Operator("shop")
    orders = orders_of(operator)
    view = orders.view("open")
    with pytest.raises(ConfigurationError, match="a view of this name already"):
        orders.view("open")
    with pytest.raises(ConfigurationError, match="letters, digits"):
        orders.view("o/p")
    with pytest.raises(ConfigurationError, match="of a table, not of another view"):
        view.view("more")
    orders.view("orders")
    with pytest.raises(ConfigurationError, match="two tables or views named 'orders'"):
        styx.App("shop", [operator])


def test_a_view_is_no_parent_and_is_declared_before_the_app() -> None:
    operator = Operator("shop")
    orders = orders_of(operator)
    view = orders.view("open", group_by="seller")
    with pytest.raises(ConfigurationError, match="rows cannot refer to groups of view 'open' of table shop/orders"):
        operator.table("notes", Order, key="id", references=Ref("seller", view))
    styx.App("shop", [operator])
    with pytest.raises(ConfigurationError, match="declare all views before App"):
        orders.view("late")


def test_a_table_has_so_many_views_at_most() -> None:
    orders = orders_of()
    for number in range(16):
        orders.view(f"v{number}")
    with pytest.raises(ConfigurationError, match="16 views already, which is the limit"):
        orders.view("one")


def test_an_app_finds_views_by_their_names() -> None:
    operator = Operator("shop")
    view = orders_of(operator).view("open")
    app = styx.App("shop", [operator])
    assert app.declared_table("shop/open") is app.declared_table(view) is view
    with pytest.raises(BadArguments, match="it has: open, orders"):
        app.declared_table("shop/closed")

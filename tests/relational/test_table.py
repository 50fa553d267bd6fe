"""Declarations of tables: what they give, and what is wrong with them, said all at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import pytest

import styx
from styx import App, Check, ConfigurationError, Index, Operator, Ref


class Item(msgspec.Struct, array_like=True):
    product: int
    seller: int
    price: float
    tags: list[str]
    note: str | None = None


def cart() -> Operator:
    return Operator("cart", key_type=int)


def test_the_primary_key_is_index_0_and_decodes_nothing() -> None:
    items = cart().table("items", Item, key=("product", "seller"))
    assert items.full_name == "cart/items"
    assert items.indexes[0].entry((7, 1, 2), b"", 4) == ((7,), (1, 2))


def test_an_index_gives_group_and_position() -> None:
    items = cart().table("items", Item, key="product", indexes=Index("by", equal="seller", order=("note", "price")))
    data = items.row_type.encode(Item(1, 2, 3.5, [], "n"))
    assert items.indexes[1].entry((7, 1), data, 4) == ((7, 2), (("n",), 3.5, 1))


def test_an_app_knows_the_indexes_of_its_tables() -> None:
    operator = cart()
    items = operator.table("items", Item, key="product", indexes=[Index("by_price", order="price")])
    app = styx.App("shop", [operator])
    assert app.table_indexes("cart/items") is items.indexes
    assert [index.name for index in items.indexes] == ["primary key", "by_price"]
    assert app.table_indexes("cart/<sequences>") == ()
    assert app.table_indexes("cart") == ()
    assert app.table_indexes("nobody/items") == ()


def test_a_reference_has_an_index_by_which_children_are_found() -> None:
    operator = cart()
    items = operator.table("items", Item, key="product")
    lines = operator.table("lines", Item, key=("product", "seller"), references=Ref("product", items))
    notes = operator.table("notes", Item, key="product", references=Ref("seller", items))
    assert len(lines.indexes) == 1
    assert [index.name for index in notes.indexes] == ["primary key", "reference seller"]
    assert [reference.child for reference in items.referenced_by] == [lines, notes]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    operator = cart()
    items = operator.table("items", Item, key="product")
    with pytest.raises(ConfigurationError) as raised:
        operator.table(
            "lines",
            Item,
            key=("note", "price"),
            indexes=[
                Index("a", equal="absent"),
                Index("a", order="tags"),
                Index("c", order="product", scope="app"),
                Index("first-one"),
            ],
            checks=[Check("same", bool), Check("same", bool), Check("none", cast(Any, 5)), cast(Any, "no check")],
            references=[Ref("note", items), Ref("seller", items, "set_null"), Ref("seller", items, "set_default")],
            auto="serial",
        )
    for told in (
        "column 'note' of the primary key may be None",
        "column 'price' of the primary key is of type float",
        "index 'a': the row type has no column 'absent'; it has: product, seller, price, tags, note",
        "column 'tags' is of a type without an order",
        "index 'c', scope=\"app\": it needs equal=: the rows of a value stand where the value says",
        "an index's name is letters, digits and '_', got 'first-one'",
        "index 'first-one' needs columns",
        "two indexes are named 'a'",
        "two checks are named 'same'",
        "checks= takes Check(",
        "check 'none' takes a function of a row, got 5",
        "auto='serial' needs a primary key of one column of type int",
        "the reference by note is of type (str); the primary key of cart/items is of type (int)",
        "set_null needs a column 'seller' that may be None",
        "set_default needs a default of column 'seller'",
    ):
        assert told in str(raised.value)
    assert items.referenced_by == []
    assert list(operator.tables) == ["items"]


async def _waits(row: Any) -> bool:
    return False


def _yields(row: Any) -> Any:
    yield False


class _Waits:
    async def __call__(self, row: Any) -> bool:
        return False


@pytest.mark.parametrize("function", [_waits, _yields, _Waits()], ids=["async", "generator", "object"])
def test_a_check_that_would_always_hold_is_refused(function: Any) -> None:
    with pytest.raises(ConfigurationError, match="check 'few' takes a plain function, `def` or lambda"):
        cart().table("items", Item, key="product", checks=Check("few", function))


@pytest.mark.parametrize("function", [lambda: True, lambda row, other: True], ids=["none", "two"])
def test_a_check_takes_the_row(function: Any) -> None:
    with pytest.raises(ConfigurationError, match="check 'few' takes a function of one argument, the row"):
        cart().table("items", Item, key="product", checks=Check("few", function))


def test_columns_without_an_order_are_refused() -> None:
    """The order of a set differs between processes."""
    told = r"the primary key: a column is a name, several are a tuple of names: got \{'product', 'seller'\}"
    with pytest.raises(ConfigurationError, match=told):
        cart().table("items", Item, key=cast(Any, {"product", "seller"}))
    with pytest.raises(ConfigurationError, match="index 'one': unique= is True or False, got 'yes'"):
        cart().table("items", Item, key="product", indexes=Index("one", order="seller", unique=cast(Any, "yes")))


class Clashing(msgspec.Struct):
    pk: int
    where: str


def test_a_column_cannot_have_a_name_that_a_statement_takes_for_its_own() -> None:
    cart().table("t", Clashing, key="pk")
    with pytest.raises(ConfigurationError, match="column 'pk' has the name of a parameter"):
        cart().table("t", Clashing, key="where")


def test_a_table_has_a_limited_number_of_indexes() -> None:
    indexes = [Index(f"i{number}", order="price") for number in range(17)]
    with pytest.raises(
        ConfigurationError, match="it has 17 indexes, those of its references included; the limit is 16"
    ):
        cart().table("items", Item, key="product", indexes=indexes)
    cart().table("items", Item, key="product", indexes=indexes[1:])


@pytest.mark.parametrize("name", ["", "a/b", "<sequences>", "a.b", "a" * 129, 5])
def test_a_tables_name_is_checked(name: str) -> None:
    with pytest.raises(ConfigurationError, match="a table's name is letters, digits and '_'"):
        cart().table(name, Item, key="product")


def test_a_name_is_used_once() -> None:
    operator = cart()
    operator.table("items", Item, key="product")
    with pytest.raises(ConfigurationError, match="operator 'cart' has a table 'items' already"):
        operator.table("items", Item, key="product")


def test_an_operator_in_an_app_gets_no_more_tables() -> None:
    operator = Operator("shop")
    operator.table("rows", Item, key="product")
    App("market", [operator])
    told = r"operator 'shop' is in the app 'market' already, .* 'more': declare all tables before App\(…\)"
    with pytest.raises(ConfigurationError, match=told):
        operator.table("more", Item, key="product")
    refused = Operator("other")
    with pytest.raises(ConfigurationError, match="two operators"):
        App("market", [refused, refused])
    refused.table("rows", Item, key="product")


def test_a_row_type_is_a_struct_or_dataclass() -> None:
    with pytest.raises(ConfigurationError, match=r"a row type is a msgspec\.Struct or a dataclass, not int"):
        cart().table("items", int, key="product")


def test_an_engines_key_needs_a_default() -> None:
    with pytest.raises(ConfigurationError, match="column 'product' needs a default, such as 0"):
        cart().table("items", Item, key="product", auto="serial")


def test_a_column_that_no_update_could_set_is_refused() -> None:
    @dataclass
    class Made:
        id: int
        twice: int = field(init=False, default=0)

    with pytest.raises(ConfigurationError, match=r"twice has init=False, so no update could make a row anew"):
        Operator("cart").table("made", Made, key="id")

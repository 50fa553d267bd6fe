"""References to other entities and their rows, as they are declared: which columns are which part of a key."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx import App, Operator, Ref
from styx.errors import ConfigurationError
from styx.relational.foreign_reference import ForeignReference


class Stock(msgspec.Struct):
    sku: str


class Line(msgspec.Struct):
    number: int
    sku: str | None = None
    seller: int | None = None
    region: str = ""
    above: int = 0


def declared(*references: Any, **given: Any) -> Any:
    """The line table of the operator `order`, whose keys are texts."""
    return Operator("order").table("lines", Line, key="number", references=references, **given)


def only(table: Any) -> ForeignReference:
    (reference,) = table.foreign
    assert isinstance(reference, ForeignReference)
    return reference


def test_columns_are_the_key_of_an_entity() -> None:
    reference = only(declared(Ref("seller", Operator("seller", key_type=int), "cascade")))
    assert reference.name == "order/lines(seller) → seller"
    assert reference.parent_key(Line(1, seller=7)) == (7,)
    assert reference.parent_key(Line(1)) is None
    assert reference.entity((7,)) == 7
    assert reference.parent_text((7,)) == "seller[7]"
    assert reference.child_text(("ann", 1)) == "row 1 of table order/lines of order['ann']"


def test_an_entity_with_a_key_of_two_parts_has_two_columns() -> None:
    reference = only(declared(Ref(("region", "seller"), Operator("seller", key_type=(str, int)))))
    assert reference.parent_key(Line(1, seller=7, region="eu")) == ("eu", 7)
    assert reference.parent_key(Line(1, region="eu")) is None
    assert reference.entity(("eu", 7)) == ("eu", 7)


def test_columns_are_the_key_of_an_entity_and_of_its_row() -> None:
    stock = Operator("seller", key_type=int).table("stock", Stock, key="sku")
    reference = only(declared(Ref(("seller", "sku"), stock)))
    assert reference.name == "order/lines(seller, sku) → seller/stock"
    assert reference.parent_key(Line(1, "x", 7)) == (7, "x")
    assert reference.entity((7, "x")) == 7
    assert reference.parent_text((7, "x")) == "row 'x' of table seller/stock of seller[7]"


def test_how_many_columns_there_are_says_whether_the_parent_is_of_the_same_entity() -> None:
    inside = declared(Ref("above", "lines"))
    assert [each.parent for each in inside.references] == [inside]
    assert inside.foreign == ()
    outside = declared(Ref(("region", "above"), "lines"))
    assert outside.references == ()
    assert only(outside).parent_table is outside


def test_a_reference_elsewhere_needs_no_index() -> None:
    table = declared(Ref("seller", Operator("seller", key_type=int)))
    assert len(table.indexes) == 1


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        (
            Ref("sku", Operator("seller", key_type=int)),
            r"the reference by sku is of type \(str\); the key of operator 'seller' is of type \(int\)",
        ),
        (
            Ref("sku", Operator("seller", key_type=int).table("stock", Stock, key="sku")),
            r"is of type \(str\); a row of seller/stock is found by the key of its entity and its primary key, of type "
            r"\(int, str\)",
        ),
        (
            Ref("number", Operator("seller", key_type=int), "set_null"),
            "'number' is part of the primary key, which cannot be set",
        ),
        (
            Ref("above", Operator("seller", key_type=int), "set_null"),
            "set_null needs a column 'above' that may be None",
        ),
        (Ref("seller", Operator("seller", key_type=int), "forget"), "on_delete= is one of restrict, cascade"),
        (Ref("seller", 7), "takes an operator, a table that operator.table"),
        (Ref("nothing", Operator("seller", key_type=int)), "the row type has no column 'nothing'"),
    ],
)
def test_what_is_wrong_is_said(reference: Ref, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        declared(reference)


def test_an_app_has_what_its_rows_refer_to() -> None:
    order, seller = Operator("order"), Operator("seller", key_type=int)
    order.table("lines", Line, key="number", references=Ref("seller", seller))
    App("shop", [order, seller])
    for others in ([], [Operator("seller", key_type=int)]):
        with pytest.raises(ConfigurationError, match=r"→ seller refers to operator 'seller', which the app"):
            App("shop", [order, *others])

"""Names of tables and columns in SQL are unique, whatever the app calls them."""

from __future__ import annotations

from styx.query.relations import distinct, quoted, relations
from styx.query.schema import of_description
from styx.schema.description import AppDescription, OperatorDescription, TableDescription
from tests.query.conftest import Filled


def test_tables_of_the_shop(filled: Filled) -> None:
    found = {f"{each.table.schema}.{each.table.name}": each for each in relations(filled.by_app)}
    assert {
        "account.state",
        "cart.items",
        "cart.item-sold",
        "cart.mine",
        "cart.by_seller",
        "order.lines",
    } <= found.keys()
    assert len(found) == len(filled.by_app.datasets)
    assert found["order.state"].table.columns[:3] == [("key", "int"), ("key_2", "str"), ("total", "Decimal")]
    assert found["order.state"].dataset.name == "order"


def test_names_that_differ_in_capitals_or_are_taken() -> None:
    table = TableDescription(key=["a"], columns={"a": "int", "A": "int", "KEY": "str"})
    one = OperatorDescription(
        n_partitions=None, key_type="str", partition_key=False, functions={}, tables={"state": table, "State": table}
    )
    schema = of_description(AppDescription(name="x", operators={"shop": one, "Shop": one}))
    names = [f"{each.table.schema}.{each.table.name}" for each in relations(schema)]
    assert names == [f"{shop}.{name}" for shop in ("shop", "Shop_2") for name in ("state", "State_2", "state_3")]
    assert [name for name, _ in relations(schema)[0].table.columns] == ["key", "a", "A_2", "KEY_2"]
    assert relations(schema)[2].dataset.name == "shop", "a table keeps its name; the values get another one"


def test_distinct_and_quoted() -> None:
    assert distinct(["a", "A", "a_2", "b"]) == ["a", "A_2", "a_2_2", "b"]
    assert quoted('a"b') == '"a""b"'

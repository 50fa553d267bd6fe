"""Names of tables and columns in SQL are unique, whatever the app calls them."""

from __future__ import annotations

import duckdb
import pytest

from styx.query import sql_process
from styx.query.relations import RESERVED, SHIM, Table, distinct, quoted, relations
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


@pytest.mark.parametrize("by", ["by_app", "by_description"])
def test_rows_are_told_apart_by_their_entity_and_their_primary_key(filled: Filled, by: str) -> None:
    keys = {f"{each.table.schema}.{each.table.name}": each.table.key for each in relations(getattr(filled, by))}
    assert keys["order.state"] == ["key", "key_2"]
    assert keys["cart.items"] == ["key", "product"]
    assert keys["order.lines"] == ["entity_key", "key_2", "number"], "the lines have a column key of their own"
    if by == "by_app":
        assert keys["cart.by_seller"][:1] != ["key"], "its rows belong to no entity"


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


@pytest.mark.parametrize("name", RESERVED)
def test_names_of_duckdb_s_own(name: str) -> None:
    operator = OperatorDescription(n_partitions=None, key_type="str", partition_key=False, functions={})
    [relation] = relations(of_description(AppDescription(name="x", operators={name: operator})))
    assert relation.table.schema == f"{name}_2"
    with sql_process.connected() as connection:
        sql_process._create(connection, relation.table, iter([]))
        assert connection.sql(f"select * from {name}_2.state").fetchall() == []


@pytest.mark.parametrize("name", [name for name in RESERVED if name != SHIM])
def test_they_cannot_be_used(name: str) -> None:
    def used() -> None:
        sql_process._create(connection, Table(name, "x", [("a", "int")]), iter([]))
        connection.sql(f"select * from {name}.x")

    with sql_process.connected() as connection, pytest.raises(duckdb.Error):
        used()


def test_distinct_and_quoted() -> None:
    assert distinct(["a", "A", "a_2", "b"]) == ["a", "A_2", "a_2_2", "b"]
    assert distinct(["Temp", "a"], ["temp"]) == ["Temp_2", "a"]
    assert quoted('a"b') == '"a""b"'

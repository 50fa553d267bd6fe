"""From an operator and a key to a slot: by code and by table they agree, and wrong keys are refused."""

from typing import Any

import pytest

from styx import App, Operator
from styx.client.kafka.routing import TableRouter
from styx.errors import BadArguments, BadKey
from styx.model.request import AppRouter, Router
from styx.schema.description import describe, routing_table

shelf = Operator("shelf")
few = Operator("few", n_partitions=3, key_type=int)
paired = Operator("paired", key_type=(int, str))
grouped = Operator("grouped", key_type=(int, str), partition_key=lambda key: key[0])
app = App("shop", operators=[shelf, few, paired, grouped])

BY_APP = AppRouter(app, 16)
BY_TABLE = TableRouter(routing_table(describe(app)), 16)
both = pytest.mark.parametrize("router", [BY_APP, BY_TABLE])


def test_table_and_app_agree() -> None:
    keys: list[tuple[Operator, Any]] = [
        *((shelf, f"key {number}") for number in range(100)),
        *((few, number) for number in range(100)),
        *((paired, (number, "x")) for number in range(100)),
    ]
    slots = set()
    for operator, key in keys:
        key_and_slot = BY_APP.place(operator.name, key)
        assert key_and_slot == BY_TABLE.place(operator.name, key) == BY_TABLE.place(operator, key)
        assert key_and_slot == (key, operator.partition_of(key, 16) % 16)
        slots.add((operator.name, key_and_slot[1]))
    assert len(slots) == 16 + 3 + 16


@both
@pytest.mark.parametrize(("operator", "key"), [("shelf", 1), ("few", "1"), ("paired", ("1", 1))])
def test_wrong_keys(router: Router, operator: str, key: Any) -> None:
    with pytest.raises(BadKey, match="has keys of type"):
        router.place(operator, key)


@both
def test_lists_are_tuples(router: Router) -> None:
    assert router.place("paired", [1, "x"]) == router.place("paired", (1, "x"))


@both
def test_unknown_operators_have_slot_0(router: Router) -> None:
    assert router.place("nothing", "key") == ("key", 0)


def test_an_own_partition_key_is_known_only_to_the_code() -> None:
    assert len({BY_APP.place("grouped", (1, str(number)))[1] for number in range(50)}) == 1
    assert BY_TABLE.place(grouped, (1, "x")) == BY_APP.place("grouped", (1, "x"))
    BY_TABLE.require_exact("shelf")
    BY_TABLE.require_exact("nothing")
    with pytest.raises(BadArguments, match="connect with the App"):
        BY_TABLE.require_exact("grouped")

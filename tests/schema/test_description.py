"""Descriptions of apps, the rule which version may replace which, and the routing table of clients without code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator
from styx.errors import BadKey, UnknownOperator
from styx.schema.description import (
    AppDescription,
    decode_routing_table,
    describe,
    parse_key_type,
    refusal,
    refusal_to_go_back,
    routing_table,
)


def bank(
    name: str = "bank",
    *,
    n_partitions: int | None = 4,
    key_type: Any = str,
    partition_key: Callable[[Any], Any] | None = None,
    operator: str = "account",
) -> App:
    account = Operator(operator, n_partitions, key_type=key_type, partition_key=partition_key)

    @account.register
    async def transfer(ctx: Context, to: str, amount: int = 1) -> None: ...

    return App(name, [account])


def test_an_app_described() -> None:
    description = describe(bank(key_type=(int, str), partition_key=lambda key: key[0]))
    assert msgspec.to_builtins(description) == {
        "name": "bank",
        "operators": {
            "account": {
                "n_partitions": 4,
                "key_type": "(int, str)",
                "partition_key": True,
                "functions": {"transfer": ["to: str", "amount: int = 1"]},
                "migrate": False,
                "hints": {},
                "crons": [],
                "tables": {},
                "ttl": "",
                "subscriptions": [],
            }
        },
        "drops": [],
        "events": {},
        "graphs": {},
    }
    assert msgspec.json.decode(msgspec.json.encode(description), type=AppDescription) == description


def test_what_functions_were_registered_with() -> None:
    thing = Operator("thing")

    @thing.register(read_only=True)
    async def look(ctx: Context) -> None: ...

    @thing.register
    async def touch(ctx: Context) -> None: ...

    assert describe(App("one", [thing])).operators["thing"].hints == {"look": ["read_only"]}


def test_a_description_has_no_memory_addresses() -> None:
    thing = Operator("thing")

    @thing.register
    async def look(ctx: Context, what: Any = object()) -> None: ...  # noqa: B008

    assert describe(App("one", [thing])).operators["thing"].functions == {"look": ["what: Any = <object object>"]}


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (bank("shop"), "the app deployed is 'bank'"),
        (bank(operator="other"), "'account' has state, and the new version lacks it"),
        (bank(n_partitions=5), "n_partitions from 4 to 5"),
        (bank(n_partitions=None), "n_partitions from 4 to one for each slot"),
        (bank(key_type=int), "key_type from str to int"),
        (bank(partition_key=len), "has a partition_key now"),
    ],
)
def test_what_may_not_replace_an_app_with_state(new: App, reason: str) -> None:
    old = describe(bank())
    assert reason in str(refusal(old, describe(new), {"account"}))


def test_a_partition_key_may_not_go_away() -> None:
    old, new = describe(bank(partition_key=len)), describe(bank())
    assert "no partition_key any more" in str(refusal(old, new, {"account"}))


@pytest.mark.parametrize(
    "new", [bank(operator="other"), bank(n_partitions=5), bank(key_type=int), bank(partition_key=len)]
)
def test_without_state_an_operator_may_change(new: App) -> None:
    assert refusal(describe(bank()), describe(new), {"unrelated"}) is None


def test_the_same_app_and_more_operators_may_replace() -> None:
    old = bank()
    new = App("bank", [*bank().operators.values(), Operator("added")])
    assert refusal(describe(old), describe(new), {"account"}) is None
    assert refusal(describe(old), describe(old), {"account"}) is None


def test_going_back_over_a_conversion() -> None:
    def converting(migrate: Any) -> AppDescription:
        return describe(App("bank", [Operator("account", state_type=int, migrate=migrate)]))

    old, new = converting(None), converting(lambda old: 1)
    reason = refusal_to_go_back(new, old, {"account"})
    assert reason is not None
    assert "operator 'account'" in reason
    assert refusal_to_go_back(new, old, set()) is None, "there was nothing to convert"
    assert refusal_to_go_back(new, new, {"account"}) is None
    assert refusal_to_go_back(old, new, {"account"}) is None
    assert refusal(new, old, {"account"}) is None, "as a new version it may leave out what has done its work"


def test_functions_and_operators_may_be_removed() -> None:
    old = App("bank", [*bank().operators.values(), *bank(operator="ledger").operators.values()])
    new = App("bank", [Operator("account", 4)])
    assert refusal(describe(old), describe(new), {"account"}) is None


def test_a_routing_table_finds_the_slots_that_the_app_does() -> None:
    app = App("bank", [Operator("text"), Operator("number", 7, key_type=int), Operator("pair", 3, key_type=(int, str))])
    table = decode_routing_table(routing_table(describe(app)).encode())
    for operator, key in (("text", "ada"), ("number", 12), ("pair", (1, "x"))):
        assert table.check_key(operator, key) == key
        for n_slots in (1, 4, 16):
            assert table.slot_of(operator, key, n_slots) == app.operator(operator).partition_of(key, n_slots) % n_slots


def test_a_routing_table_checks_keys() -> None:
    table = routing_table(describe(bank(key_type=(int, str), partition_key=lambda key: key[0])))
    assert table.route("account").partition_key
    assert table.check_key("account", [1, "x"]) == (1, "x")
    with pytest.raises(BadKey, match="has keys of type"):
        table.check_key("account", "x")
    with pytest.raises(UnknownOperator, match="it has: account"):
        table.check_key("acount", "x")


@pytest.mark.parametrize("text", ["float", "(int, float)", "()", "(int"])
def test_a_text_that_is_no_key_type(text: str) -> None:
    with pytest.raises(ValueError, match="is no key type"):
        parse_key_type(text)


def test_a_routing_table_that_is_none() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_routing_table(b"\x81\xa3app\x01")

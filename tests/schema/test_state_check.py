"""Stored entities against new declarations: what fits, what does not, in which words, and some at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx import App, Operator
from styx.model.limits import Limits
from styx.schema.conversion import NotConverted, conversion
from styx.schema.state_check import StateCheck, check_tables
from styx.schema.state_findings import StateFindings, together
from styx.values.codec import encode_strict


class Old(msgspec.Struct):
    balance: int


class New(msgspec.Struct):
    cents: int
    currency: str


class Renamed(msgspec.Struct):
    """A plain rename, with a default: it can be decoded, and the balance would be lost."""

    cents: int = 0


class Wider(msgspec.Struct):
    balance: float
    currency: str = "EUR"


class Timed(msgspec.Struct):
    at: datetime
    notes: dict[str, Any] = {}


class Address(msgspec.Struct):
    zip: str


class Person(msgspec.Struct):
    address: Address


class Row(msgspec.Struct, array_like=True):
    first: int


class Sparse(msgspec.Struct, omit_defaults=True):
    balance: int = 0


class Tagged(msgspec.Struct, tag=True):
    balance: int


@dataclass
class Data:
    balance: int


def written(app: App, tables: dict[str, dict[str, bytes]]) -> dict[str, dict[Any, bytes]]:
    changes = conversion(app, tables, Limits(), 1).writes
    return {name: {key: data for key, data in table.items() if data is not None} for name, table in changes.items()}


def in_cents(old: Old) -> New:
    return New(old.balance * 100, "EUR")


def app_of(
    state_type: Any = None, migrate: Callable[[Any], Any] | None = None, name: str = "acc", **declared: Any
) -> App:
    return App("bank", [Operator(name, state_type=state_type, migrate=migrate, **declared)])


def checked(app: App, *values: Any, n_slots: int = 1) -> StateFindings:
    """The findings for entities `a`, `b`, … with these values, in the slots where their operator has them."""
    operator = Operator("acc")
    slots: dict[int, dict[str, dict[Any, bytes]]] = {}
    for key, value in zip("abcdefghijklmnop", values, strict=False):
        table = slots.setdefault(operator.slot_of(key, n_slots), {}).setdefault("acc", {})
        table[key] = value if type(value) is bytes else msgspec.msgpack.encode(value)
    return check_tables(app, n_slots, Limits(), slots)


def test_a_field_that_is_missing_is_told_with_its_entity() -> None:
    found = checked(app_of(New), Old(5), New(5, "EUR"))
    assert (found.checked, found.offenders, found.first) == (2, 1, ["acc['a']: missing required field 'cents'"])
    refusal = found.refusal()
    assert refusal is not None
    assert "Operator(..., migrate=)" in refusal
    assert "operator.table(" not in refusal
    assert refusal.startswith("1 of 2 stored entities do not fit the new version:\n  acc['a']: missing")


@pytest.mark.parametrize(
    ("state_type", "value", "words"),
    [
        (Old, {"balance": "much"}, "acc['a'].balance: expected 'int', got 'str'"),
        (Person, {"address": {}}, "acc['a'].address: missing required field 'zip'"),
        (list[int], [1, "2"], "acc['a'][1]: expected 'int', got 'str'"),
        (Old, b"\xc1", "acc['a']: DecodeError"),
    ],
)
def test_misfits_have_a_path(state_type: Any, value: Any, words: str) -> None:
    first = checked(app_of(state_type), value).first
    assert first[0].startswith(words.split("Decode", maxsplit=1)[0])


@pytest.mark.parametrize("value", [Old(5), {"balance": 5}, {"balance": 5.0}])
def test_what_can_be_converted_fits(value: Any) -> None:
    found = checked(app_of(Wider), value)
    assert (found.offenders, found.dropping) == (0, {})


def test_plain_state_with_a_datetime_fits_a_type() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    stored = encode_strict({"at": at, "notes": {"since": at}})
    app = app_of(Timed)
    assert checked(app, stored).offenders == 0
    assert app.operators["acc"].decode_state(stored) == Timed(at, {"since": at})


def test_typed_state_fits_without_a_type() -> None:
    assert checked(app_of(), Timed(datetime(2026, 1, 2, tzinfo=UTC)), Old(5), [Decimal(1)]).offenders == 0


def test_what_would_be_dropped_is_told() -> None:
    found = checked(app_of(Renamed), Old(5), Renamed(5))
    assert (found.offenders, found.dropping, found.dropped) == (0, {"acc": 1}, {"acc": "acc['a'].balance"})
    assert "lost when they are put next: 1, such as acc['a'].balance" in found.notes()[-1]


@pytest.mark.parametrize(
    ("state_type", "value", "dropped"),
    [
        (Person, {"address": {"zip": "1", "city": "x"}}, ".address.city"),
        (list[Old], [{"balance": 1}, {"balance": 1, "x": 2}], "[1].x"),
        (dict[str, Old], {"k": {"balance": 1, "x": 2}}, ".k.x"),
        (Row, [1, 2], "[1]"),
        (Data, {"balance": 1, "x": 2}, ".x"),
        (Sparse, {"balance": 0}, ""),
        (Tagged, Tagged(1), ""),
        (Data, {"balance": 1}, ""),
        (dict[int, int], {1: 2}, ""),
        (set[int], [3, 1], ""),
        (set[int], [3, 1, 3], "[2]"),
        (dict[str, float], {"a": 2**60}, ""),
        (dict[str, float], {"a": 5, "b": 2**60 + 1}, ".b"),
        (list[float], [0.5, 2**60 + 1], "[1]"),
        (dict[Decimal, int], {"1.0": 1, "1.00": 2}, ".1.00"),
    ],
)
def test_parts_that_a_type_does_not_have(state_type: Any, value: Any, dropped: str) -> None:
    found = checked(app_of(state_type), value)
    assert found.offenders == 0, found.first
    assert found.dropped.get("acc", "acc['a']") == f"acc['a']{dropped}"


def test_keys_of_another_type_or_place() -> None:
    values = [Old(n) for n in range(8)]
    assert checked(app_of(Old, key_type=int), values[0]).first[0].startswith("acc['a']: ")
    moved = checked(app_of(Old, partition_key=lambda key: key * 2), *values, n_slots=4)
    assert moved.offenders
    assert "would be looked for in slot" in moved.first[0]
    assert checked(app_of(Old, n_partitions=4), *values, n_slots=4).offenders == 0


def test_an_operator_that_is_gone() -> None:
    found = checked(app_of(Old, name="account"), Old(5))
    assert found.first == ["acc['a']: the new version has no operator 'acc'"]


def test_a_type_whose_own_code_fails() -> None:
    class Odd(msgspec.Struct):
        balance: int

        def __post_init__(self) -> None:
            raise LookupError("nothing there")

    class Leaving(msgspec.Struct):
        balance: int

        def __post_init__(self) -> None:
            raise SystemExit(3)

    assert checked(app_of(Odd), Old(5)).first == ["acc['a']: LookupError: nothing there"]
    assert checked(app_of(Leaving), Old(5)).first == ["acc['a']: SystemExit: 3"]


# Some at a time --------------------------------------------------------------------------------------------


def test_a_check_goes_on_where_it_was_and_sees_what_is_there_then() -> None:
    table = {f"k{n}": msgspec.msgpack.encode(Old(n)) for n in range(100)}
    check = StateCheck(app_of(New), 1, Limits())
    check.add(0, "acc", table)
    assert not check.run(30)
    assert (check.done, check.take().offenders) == (False, 30)
    for n in range(50):
        del table[f"k{n}"]
    table["k99"] = msgspec.msgpack.encode(New(1, "EUR"))
    assert check.run(1_000)
    assert (check.done, check.take().offenders) == (True, 49)
    check.add(0, "acc", table, ["k98", "k99", "k1"])
    assert check.run(10)
    found = check.take()
    assert (found.checked, found.offenders) == (2, 1)


def test_ten_offenders_are_told_of_and_all_are_counted() -> None:
    found = checked(app_of(New), *[Old(1)] * 16)
    assert (found.offenders, len(found.first)) == (16, 10)
    both = together([found, found])
    assert (both.checked, both.offenders, len(both.first)) == (32, 32, 10)
    assert "… and 22 more" in (both.refusal() or "")


# Conversion ------------------------------------------------------------------------------------------------


def test_migrate_is_for_what_is_not_read_whole() -> None:
    app = app_of(New, in_cents)
    found = checked(app, Old(5), New(7, "USD"))
    assert (found.offenders, found.migrated) == (0, {"acc": 1})
    tables = {"acc": {"a": msgspec.msgpack.encode(Old(5)), "b": msgspec.msgpack.encode(New(7, "USD"))}}
    before = {name: dict(table) for name, table in tables.items()}
    new = written(app, tables)
    assert tables == before
    decode = app.operators["acc"].decode_state
    assert [decode(data) for data in {**tables["acc"], **new["acc"]}.values()] == [New(500, "EUR"), New(7, "USD")]
    assert not conversion(app, new, Limits(), 1), "what migrate gave is never converted again"


def test_migrate_is_for_what_would_be_dropped() -> None:
    app = app_of(Renamed, lambda old: Renamed(old["balance"] * 100))
    new = written(app, {"acc": {"a": msgspec.msgpack.encode(Old(5))}})
    assert app.operators["acc"].decode_state(new["acc"]["a"]) == Renamed(500)


def untyped(old):  # type: ignore[no-untyped-def]
    return New(old["balance"], "EUR")


def failing(old: Any) -> New:
    raise ValueError("no idea")


def wrong(old: Any) -> Any:
    return {"cents": "many"}


def too_much(old: Any) -> Any:
    return {"cents": 1, "currency": "EUR", "balance": 5}


def of_another_type(old: Person) -> New:
    return New(1, "EUR")


def leaving(old: Any) -> New:
    raise SystemExit(3)


def large(old: Any) -> New:
    return New(1, "x" * 2_000_000)


@pytest.mark.parametrize(
    ("migrate", "words"),
    [
        (failing, ": migrate= raised ValueError: no idea"),
        (leaving, ": migrate= raised SystemExit: 3"),
        (wrong, ": migrate= returned what cannot be stored"),
        (too_much, ": migrate= returned what cannot be stored: New has no field 'balance'; it has: cents, currency"),
        (of_another_type, ": missing required field 'address' (the type of migrate='s parameter)"),
        (large, ": what migrate= gave has 2000022 bytes"),
    ],
)
def test_a_migration_that_fails_names_the_entity(migrate: Callable[[Any], Any], words: str) -> None:
    found = checked(app_of(New, migrate), Old(5))
    assert found.offenders == 1
    assert found.first[0].startswith(f"acc['a']{words}"), found.first
    with pytest.raises(NotConverted, match="acc"):
        conversion(app_of(New, migrate), {"acc": {"a": msgspec.msgpack.encode(Old(5))}}, Limits(), 1)


def test_a_migration_that_is_not_deterministic_is_found() -> None:
    calls: list[int] = []

    def counting(old: Any) -> New:
        calls.append(1)
        return New(len(calls), "EUR")

    assert "gave two results" in checked(app_of(New, counting), Old(5)).first[0]


def test_a_migration_may_change_what_it_is_given() -> None:
    def in_place(old: dict[str, Any]) -> dict[str, Any]:
        old["cents"] = old.pop("balance")
        old["currency"] = "EUR"
        return old

    assert checked(app_of(New, in_place), Old(5)).migrated == {"acc": 1}
    assert checked(app_of(New, untyped), Old(5)).migrated == {"acc": 1}


def test_sequences_are_looked_for_where_their_entities_are() -> None:
    """Their numbers are read by no code of the app, so only the place can be wrong."""
    plain, typed = Operator("shop"), Operator("shop", state_type=New)
    slot = plain.slot_of("a", 4)
    slots = {slot: {"shop/<sequences>": {("a", "bills"): b"\x05", ("a", "credit notes"): b"\x01"}}}
    for operator in (plain, typed):
        assert check_tables(App("shops", [operator]), 4, Limits(), slots) == StateFindings(checked=2)
    moved = Operator("shop", partition_key=lambda key: key + "b")
    for other in (moved, Operator("shop", key_type=int), Operator("shop", key_type=(str, int)), Operator("store")):
        assert check_tables(App("shops", [other]), 4, Limits(), slots).offenders == 2

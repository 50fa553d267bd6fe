"""The built-in function behind loads: what it stores, what it refuses, and that nothing else can reach it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from proof.random_requests import request_key
from styx import App, ConfigurationError, Context, Limits, Operator
from styx.messages import Request
from styx.model.bulk_load import LOAD_CHUNK_PAIRS_MAX, encode_pair, load_arguments
from styx.model.execution import Outcome
from styx.model.function_spec import LOAD_FUNCTION
from styx.model.partitioning import Key
from styx.testing import SerialReference


class Item(msgspec.Struct):
    price: Decimal
    tags: set[str] = set()

    def __post_init__(self) -> None:
        if self.price < 0:
            raise LookupError("below zero")


plain = Operator("plain")
typed = Operator("typed", key_type=int, state_type=Item)
pair = Operator("pair", key_type=(int, str), partition_key=lambda key: key[0])


async def put(ctx: Context, value: Any) -> None:
    await ctx.put(value)


@plain.register
async def load_from_inside(ctx: Context) -> None:
    ctx.call_async("plain", LOAD_FUNCTION, "b", (False, [["b", 1]]))


for _operator in (plain, pair):
    _operator.register(put)

app = App("loads", [plain, typed, pair])


def reference(limits: Limits | None = None, n_slots: int = 1) -> SerialReference:
    return SerialReference(app, limits, n_slots)


def load(
    on: SerialReference, operator: Operator, pairs: Sequence[tuple[Key, bytes]], replace: bool = False, tid: int = 1
) -> Outcome:
    encoded = [encode_pair(key, value) for key, value in pairs]
    arguments = load_arguments(encoded, replace)
    return on.run(tid, 0, Request("r", operator.name, request_key(pairs[0][0]), LOAD_FUNCTION, arguments))


def error(outcome: Outcome) -> tuple[str, str, str]:
    assert outcome.error is not None
    return outcome.error


def test_it_stores_what_put_would() -> None:
    naive = datetime(2026, 1, 2)  # noqa: DTZ001 - a state may be one
    values = [None, 7, "x", b"y", [1, {"a": datetime(2026, 1, 2, tzinfo=UTC)}], {3: 1.5}, naive]
    loaded, called = reference(), reference()
    pairs = [(f"k{n}", plain.encode_state(value)) for n, value in enumerate(values)]
    assert load(loaded, plain, pairs).result == msgspec.msgpack.encode(len(values))
    for tid, (key, _) in enumerate(pairs):
        outcome = called.run(tid, 0, Request("r", "plain", key, "put", msgspec.msgpack.encode([values[tid]])))
        assert outcome.error is None
    called.state["plain", "k4"] = loaded.state["plain", "k4"]  # an argument's zone becomes UTC, a state's stays
    called.state["plain", "k6"] = loaded.state["plain", "k6"]  # a naive time becomes text as an argument
    assert loaded.state == called.state
    assert [loaded.value("plain", key) for key, _ in pairs] == values


def test_equal_values_become_equal_bytes_however_they_were_sent() -> None:
    sent = msgspec.msgpack.encode({"tags": ["b", "a", "b"], "price": "1.50", "unknown": 1})
    on = reference()
    load(on, typed, [(1, sent), (2, typed.encode_state(Item(Decimal("1.50"), {"a", "b"})))])
    assert on.state["typed", 1] == on.state["typed", 2]


def test_an_entity_that_exists_ends_the_whole_chunk() -> None:
    on = reference()
    load(on, plain, [("b", b"\x01")])
    kind, name, message = error(load(on, plain, [("a", b"\x02"), ("b", b"\x03")]))
    assert (kind, name) == ("aborted", "KeyExists")
    assert message.startswith("plain['b'] exists already")
    assert on.state == {("plain", "b"): b"\x01"}


def test_replace_overwrites() -> None:
    on = reference()
    load(on, plain, [("b", b"\x01")])
    assert load(on, plain, [("a", b"\x02"), ("b", b"\x03")], replace=True).error is None
    assert on.state == {("plain", "a"): b"\x02", ("plain", "b"): b"\x03"}


def test_a_key_that_comes_twice_exists() -> None:
    on = reference()
    assert error(load(on, plain, [("a", b"\x01"), ("b", b"\x02"), ("a", b"\x03")]))[1:] == (
        "KeyExists",
        "plain['a'] exists already, or comes twice in one load; replace=True overwrites it",
    )
    assert load(on, plain, [("a", b"\x01"), ("a", b"\x03")], replace=True).error is None
    assert on.state == {("plain", "a"): b"\x03"}


@pytest.mark.parametrize(
    ("operator", "key", "value", "message"),
    [
        (plain, "b", b"\xd4\x63\x00", "plain['b'] cannot be loaded: ValueError: unknown extension type 99"),
        (plain, 7, b"\x01", "operator 'plain' has keys of type str, got 7 of type int"),
        (plain, "x" * 2049, b"\x01", "a key of operator 'plain' has 2049 bytes; the limit is 2048"),
        (typed, 2, b"\x01", "typed[2] cannot be loaded: ValidationError: Expected `object`, got `int`"),
        (typed, 2, b"\x81\xa5price\xa2-1", "typed[2] cannot be loaded: "),
        (pair, (2, 3), b"\x01", "operator 'pair' has keys of type (int, str), got [2, 3] of type list"),
    ],
)
def test_a_pair_that_is_wrong_is_named_and_nothing_is_stored(
    operator: Operator, key: Any, value: bytes, message: str
) -> None:
    on = reference()
    first = dict[str, Key](plain="a", typed=1, pair=(1, "a"))[operator.name]
    good = typed.encode_state(Item(Decimal(1))) if operator is typed else b"\x01"
    code, _, text = error(load(on, operator, [(first, good), (key, value)]))
    assert code == "bad_arguments"
    assert text.startswith(message)
    assert on.state == {}


def test_a_key_of_another_slot() -> None:
    on = reference(n_slots=4)
    code, kind, message = error(load(on, pair, [((1, "a"), b"\x01"), ((1, "b"), b"\x01"), ((2, "c"), b"\x01")]))
    assert (code, kind) == ("bad_arguments", "BadKey")
    assert message.startswith("pair[(2, 'c')] does not belong to the slot of (1, 'a')")
    assert on.state == {}


def test_limits() -> None:
    on = reference(Limits(value_bytes_max=10))
    assert error(load(on, plain, [("a", b"\x01"), ("b", b"\xaa" + b"x" * 10)])) == (
        "too_large",
        "ValueTooLarge",
        "plain['b'] has a state of 11 bytes; the limit is 10: split it over several entities",
    )
    assert load(on, plain, [("a", b"\xa9" + b"x" * 9), ("b", b"\xa9" + b"x" * 9)]).error is None, "each by itself"
    many = [(f"k{n}", b"\x01") for n in range(LOAD_CHUNK_PAIRS_MAX + 1)]
    code, _, message = error(load(on, plain, many))
    assert (code, message) == ("bad_arguments", "a chunk of a bulk load has 1 to 1000 pairs, got 1001")
    assert load(on, plain, many[1:]).error is None


@pytest.mark.parametrize("params", [b"", b"\xc1", b"\x90", b"\x92\xc2\x90", b"\x92\xc2\x91\x01", b"\x92\x01\x90"])
def test_a_chunk_that_is_none(params: bytes) -> None:
    code, kind, _ = error(reference().run(1, 0, Request("r", "plain", "a", LOAD_FUNCTION, params)))
    assert (code, kind) == ("bad_arguments", "BadArguments")


def test_its_name_cannot_be_registered() -> None:
    async def other(ctx: Context) -> None: ...

    other.__name__ = LOAD_FUNCTION
    with pytest.raises(ConfigurationError, match="is the engine's own"):
        Operator("other").register(other)


def test_no_function_can_call_it() -> None:
    outcome = reference().run(1, 0, Request("r", "plain", "a", "load_from_inside", b"\x90"))
    assert error(outcome)[1] == "UnknownFunction"

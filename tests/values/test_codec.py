"""State comes back as what was put, or is refused by name: nothing changes its type on the way."""

from __future__ import annotations

import dataclasses
import enum
import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgpack
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.errors import UnsupportedValue
from styx.values.codec import TypedState, decode_plain, encode_any, encode_strict, shown

moments = st.datetimes(timezones=st.none() | st.just(UTC) | st.just(timezone(timedelta(hours=-3, minutes=30))))
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary() | moments
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
)


class Colour(enum.IntEnum):
    RED = 1


class Text(str):
    """A str that is more than a str."""


class Account(msgspec.Struct):
    balance: Decimal
    tags: set[str] = msgspec.field(default_factory=set)


@dataclasses.dataclass
class Point:
    x: int


class Hostile:
    """Its own code raises whenever it is asked for anything."""

    def __repr__(self) -> str:
        raise SystemExit("no")


# Without a declared type ---------------------------------------------------------------------------------------


def same(a: Any, b: Any) -> bool:
    """Equal, of the same type, at every level; NaN is NaN, and a moment keeps its offset."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, datetime):
        return bool(a == b) and a.utcoffset() == b.utcoffset()
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    return bool(a == b)


@given(values)
def test_a_value_comes_back_as_what_it_was(value: Any) -> None:
    assert same(decode_plain(encode_strict(value)), value)


@given(values)
def test_equal_values_have_equal_bytes(value: Any) -> None:
    assert encode_strict(decode_plain(encode_strict(value))) == encode_strict(value)


def test_a_tuple_is_a_list_from_the_first_read_on() -> None:
    assert decode_plain(encode_strict((1, (2, [3])))) == [1, [2, [3]]]


def test_maps_keep_their_order_and_the_types_of_their_keys() -> None:
    assert list(decode_plain(encode_strict({"b": 1, "a": 2, 3: 4})).items()) == [("b", 1), ("a", 2), (3, 4)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Decimal("1.10"), r"Decimal\('1.10'\) of type Decimal .*state_type"),
        ({1, 2}, r"\{1, 2\} of type set .*state_type"),
        (Colour.RED, "RED.* of type Colour cannot be stored.*"),
        (Text("a"), "'a' of type Text cannot be stored, .*convert it"),
        (Point(1), r"Point\(x=1\) of type Point .*state_type"),
        (Account(Decimal(1)), "of type Account .*state_type"),
        (object(), "<object object> of type object .*state_type"),
        (2**64, "18446744073709551616 has more than 64 bits"),
        (-(2**63) - 1, "has more than 64 bits"),
        ("\ud800", "surrogates"),
    ],
)
def test_anything_else_is_refused_by_name_however_deep_it_is(value: Any, words: str) -> None:
    for whole in (value, [value], {"key": {"deeper": [0, value]}}, {"a": (value,)}):
        with pytest.raises(UnsupportedValue, match=words):
            encode_strict(whole)


def test_an_object_that_cannot_even_be_shown_is_refused() -> None:
    with pytest.raises(UnsupportedValue, match=r"<unprintable Hostile> of type Hostile .*state_type"):
        encode_strict(Hostile())


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def test_what_is_nested_too_deeply_is_refused_before_it_is_stored() -> None:
    assert decode_plain(encode_strict(nested(200))) == nested(200)
    with pytest.raises(UnsupportedValue):
        encode_strict(nested(5_000))
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(UnsupportedValue):
        encode_strict(circle)


def test_a_refused_value_leaves_nothing_behind_in_the_encoder() -> None:
    for bad in (["half", {1}], ["half", 2**64], ["half", "\ud800"], nested(5_000)):
        with pytest.raises(UnsupportedValue):
            encode_strict(bad)
        assert encode_strict("next") == msgpack.packb("next")


def test_an_unknown_extension_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="unknown extension type 42"):
        decode_plain(msgpack.packb(msgpack.ExtType(42, b"")))


# With a declared type ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (Account, Account(Decimal("1.10"), {"a", "b"})),
        (Point, Point(3)),
        (list[Decimal], [Decimal("1.5"), Decimal("1e-30")]),
        (tuple[int, str], (1, "a")),
        (dict[int, Colour], {1: Colour.RED}),
        (datetime, datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
    ],
)
def test_a_declared_type_comes_back(declared: Any, value: Any) -> None:
    typed = TypedState(declared)
    assert same(typed.decode(typed.encode(value)), value)


def test_what_does_not_fit_the_declared_type_is_refused_when_it_is_put() -> None:
    with pytest.raises(UnsupportedValue, match=r"\{'balance': 'much'\} does not fit the state_type Account: "):
        TypedState(Account).encode({"balance": "much"})
    with pytest.raises(UnsupportedValue, match="the state cannot be encoded"):
        TypedState(Account).encode(object())


def test_arguments_and_results_say_what_could_not_be_encoded() -> None:
    with pytest.raises(UnsupportedValue, match=r"params of account.credit cannot be encoded: .*<object object>"):
        encode_any(object(), "params of", "account", "credit")


# Shown in errors -----------------------------------------------------------------------------------------------


def test_values_are_shown_short_and_without_addresses() -> None:
    assert shown("a") == "'a'"
    assert len(shown("x" * 10_000)) < 100
    assert shown(object()) == "<object object>"
    assert shown(Hostile()) == "<unprintable Hostile>"
    assert shown([object(), len]) == "[<object object>, <built-in function len>]"

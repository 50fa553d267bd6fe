"""Events: their declarations, their values, and the wrong ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from styx import App, ConfigurationError, Event, Operator
from styx.errors import BadKey, UnsupportedValue, ValueTooLarge
from styx.model.event import EmittedEvent, decode_emitted, encode_emitted
from styx.model.event_form import EVENT_BYTES_MAX
from styx.model.event_place import ELSEWHERE
from styx.model.key_text import key_of, text_of
from styx.model.partitioning import KeySpace, KeyType
from styx.model.table_names import holds_events, holds_rows, owner_of


class Paid(msgspec.Struct):
    order: int
    amount: Decimal = Decimal(0)


@dataclass
class Measured:
    value: float


paid: Event[Paid] = Event("order-paid", Paid)


def test_a_value_comes_back() -> None:
    payload = paid.encode(Paid(7, Decimal("1.50")))
    assert paid.decode(payload) == Paid(7, Decimal("1.50"))
    assert paid.to_json(payload) == b'{"order":7,"amount":"1.50"}'
    assert paid.from_json(paid.to_json(payload)) == Paid(7, Decimal("1.50"))


@pytest.mark.parametrize(
    ("kind", "value", "json"),
    [
        (int, 3, b"3"),
        (str, "é\x01", '"é\\u0001"'.encode()),
        (bytes, b"\xff", b'"/w=="'),
        (list[Paid], [Paid(1)], b'[{"order":1,"amount":"0"}]'),
        (Measured, Measured(1.5), b'{"value":1.5}'),
        (datetime, datetime(2026, 1, 2, tzinfo=UTC), b'"2026-01-02T00:00:00Z"'),
        (set[str], {"b", "a"}, b'["a","b"]'),
        (Paid | None, None, b"null"),
        (dict[int, str], {1: "x"}, b'{"1":"x"}'),
    ],
)
def test_values_of_many_types_have_json(kind: Any, value: Any, json: bytes) -> None:
    event: Event[Any] = Event("e", kind)
    payload = event.encode(value)
    assert event.to_json(payload) == json
    assert event.from_json(json) == event.decode(payload) == value


@pytest.mark.parametrize("value", [None, 7, {"order": "7"}, {}, Paid("7")])  # type: ignore[arg-type]
def test_a_wrong_value_is_refused_by_name(value: Any) -> None:
    with pytest.raises(UnsupportedValue, match="event 'order-paid'"):
        paid.encode(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_json_does_not_have_is_refused(value: float) -> None:
    measured: Event[Measured] = Event("measured", Measured)
    with pytest.raises(UnsupportedValue, match="would not come back from JSON"):
        measured.encode(Measured(value))


def test_the_limit_is_one_on_the_json() -> None:
    event: Event[str] = Event("text", str)
    event.encode("x" * (EVENT_BYTES_MAX - 2))
    with pytest.raises(ValueTooLarge, match=f"event 'text' has {EVENT_BYTES_MAX + 1} bytes as JSON"):
        event.encode("x" * (EVENT_BYTES_MAX - 1))
    with pytest.raises(ValueTooLarge):
        event.encode("\x01" * (EVENT_BYTES_MAX // 6 + 1))


@pytest.mark.parametrize("name", ["", "a b", "a/b", "é", "x" * 101, None, 7, "a\n"])
def test_a_wrong_name_is_refused(name: Any) -> None:
    with pytest.raises(ConfigurationError, match="an event's name has 1 to 100"):
        Event(name, Paid)


@pytest.mark.parametrize("version", [0, -1, 1.0, "1", None, True, 2**31])
def test_a_wrong_version_is_refused(version: Any) -> None:
    with pytest.raises(ConfigurationError, match="version= is a whole number from 1"):
        Event("e", Paid, version=version)


@pytest.mark.parametrize("keep", [timedelta(0), timedelta(days=-1), 7, "1d"])
def test_a_wrong_time_to_keep_is_refused(keep: Any) -> None:
    with pytest.raises(ConfigurationError, match="keep= is a timedelta above 0"):
        Event("e", Paid, keep=keep)


@pytest.mark.parametrize("kind", [None, Any, 7, "Paid", int | str | bytes | datetime])
def test_a_wrong_type_is_refused(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match="event 'e'"):
        Event("e", kind)


def test_an_app_has_events_by_name() -> None:
    assert App("shop", [], events=[paid]).events == {"order-paid": paid}
    assert App("shop", []).events == {}


def test_two_events_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two events named 'order-paid'"):
        App("shop", [], events=[paid, Event("order-paid", int)])


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="in events= is not an Event"):
        App("shop", [Operator("o", key_type=str)], events=["order-paid"])  # type: ignore[list-item]


def test_the_events_need_an_operator_of_the_engine_only_where_there_are_some() -> None:
    assert App("shop", []).owner(ELSEWHERE.name) is None
    assert App("shop", [], events=[paid]).owner(ELSEWHERE.name) is ELSEWHERE


def test_the_table_of_events_holds_no_rows() -> None:
    assert holds_events("order/<events>")
    assert not holds_rows("order/<events>")
    assert owner_of("order/<events>") == "order"


def test_an_emission_comes_back() -> None:
    emitted = EmittedEvent("e", 1, "order", 7, b"\x90")
    assert decode_emitted(encode_emitted(emitted)) == emitted


@pytest.mark.parametrize("key", ["a", "", 7, -(2**63), ("a", 7), ("é",)])
def test_a_key_elsewhere_has_the_partition_of_an_entity_with_it(key: Any) -> None:
    kinds = tuple(map(type, key)) if isinstance(key, tuple) else type(key)
    space = KeySpace("o", KeyType(kinds), None, None)
    text = text_of(key)
    assert ELSEWHERE.slot_of(text, 7) == space.slot_of(key, 7)
    assert key_of(text) == (list(key) if isinstance(key, tuple) else key)


@pytest.mark.parametrize(
    "key", [None, 1.5, (), [], ("a", None), 2**64, (2**63,), -(2**63) - 1, "x" * 3_000, True, {"a": 1}, "\ud800", b"x"]
)
def test_a_wrong_key_elsewhere_is_refused(key: Any) -> None:
    with pytest.raises(BadKey, match=r"ctx\.emit\(…, key=…\) takes"):
        text_of(key)

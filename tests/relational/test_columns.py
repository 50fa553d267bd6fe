"""Columns: which types have an order, their comparables, and what a query may compare them with."""

from __future__ import annotations

import enum
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from msgspec import inspect

from styx.errors import BadQuery, UnsupportedValue
from styx.relational.columns import Column


class Level(enum.Enum):
    HIGH = 2
    LOW = 1


def column(declared: Any) -> Column:
    return Column("c", inspect.type_info(declared))


NAIVE = Annotated[datetime, msgspec.Meta(tz=False)]
IN_ORDER: list[tuple[Any, list[Any]]] = [
    (int, [-(2**63), 0, 2**63 - 1]),
    (str, ["", "B", "a", "\ue000", "\U00010000"]),
    (bool, [False, True]),
    (bytes, [b"", b"\x00", b"a"]),
    (float, [float("-inf"), -1.0, 0.5]),
    (Decimal, [Decimal("-Infinity"), Decimal("-0.1"), Decimal("1.00"), Decimal("1.01")]),
    (date, [date(1, 1, 1), date(2026, 1, 1)]),
    (datetime, [datetime(1, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC)]),
    (NAIVE, [datetime(1, 1, 1), datetime(9999, 12, 31)]),  # noqa: DTZ001 - on purpose
    (UUID, [UUID(int=1), UUID(int=2**127)]),
    (Level, [Level.LOW, Level.HIGH]),
    (Literal["a", "b"], ["a", "b"]),
    (int | None, [None, -5, 5]),
    (Annotated[str, msgspec.Meta(max_length=5)] | None, [None, "", "a"]),
]


@pytest.mark.parametrize(("declared", "values"), IN_ORDER, ids=[str(declared) for declared, _ in IN_ORDER])
def test_comparables_have_the_order_of_the_values(declared: Any, values: list[Any]) -> None:
    tested = column(declared)
    comparables = [tested.stored(value) for value in values]
    assert comparables == sorted(comparables)
    assert len(set(comparables)) == len(values)
    assert [tested.asked(value) for value in values] == comparables
    decoder = msgspec.msgpack.Decoder(list[tested.comparable_type])  # type: ignore[name-defined]  # as cursors are
    again = decoder.decode(msgspec.msgpack.encode(comparables))
    assert [tuple(each) if type(each) is list else each for each in again] == comparables


@pytest.mark.parametrize("declared", [int, str, bool, date, datetime, NAIVE, UUID, Level], ids=str)
def test_a_key_gives_its_values_back(declared: Any) -> None:
    tested = column(declared)
    values = next(values for kind, values in IN_ORDER if kind is declared)
    for value in values:
        part = tested.key_part(value)
        assert type(part) in (int, str)
        assert tested.from_part(part) == value
        assert type(tested.from_part(part)) is type(value)


def test_equal_values_are_one_comparable() -> None:
    assert column(Decimal).stored(Decimal("1.0")) == column(Decimal).stored(Decimal("1.00"))
    zone = timezone(timedelta(hours=2))
    assert column(datetime).stored(datetime(2026, 1, 1, 2, tzinfo=zone)) == column(datetime).stored(
        datetime(2026, 1, 1, tzinfo=UTC)
    )


def test_floats_are_compared_with_an_int_as_it_is() -> None:
    weight = column(float)
    assert weight.asked(2**53 + 1) > weight.stored(2.0**53)
    assert weight.asked(10**400) > weight.stored(1e308)


@pytest.mark.parametrize("declared", [list[int], dict[str, int], int | str, Any], ids=str)
def test_other_types_have_no_order(declared: Any) -> None:
    assert column(declared).kind is None


@pytest.mark.parametrize(
    ("declared", "value", "told"),
    [
        (float, float("nan"), "NaN has no place in an order"),
        (Decimal, Decimal("NaN"), "NaN has no place in an order"),
        (Decimal, Decimal("sNaN"), "NaN has no place in an order"),
        (datetime, datetime(2026, 1, 1), "has no time zone"),  # noqa: DTZ001 - on purpose
        (NAIVE, datetime(2026, 1, 1, tzinfo=UTC), "has a time zone"),
    ],
    ids=["float", "Decimal", "sNaN", "naive", "aware"],
)
def test_what_has_no_order_is_refused(declared: Any, value: Any, told: str) -> None:
    with pytest.raises(UnsupportedValue, match=told):
        column(declared).stored(value)
    with pytest.raises(BadQuery, match=f"column 'c': .*{told}"):
        column(declared).asked(value)


@pytest.mark.parametrize(
    ("declared", "value"), [(int, True), (int, "1"), (str, 1), (date, datetime(2026, 1, 1, tzinfo=UTC)), (int, None)]
)
def test_a_value_of_another_type_is_refused(declared: Any, value: Any) -> None:
    with pytest.raises(BadQuery, match=r"column 'c' is of type .*, and was compared with"):
        column(declared).asked(value)


@pytest.mark.parametrize(
    ("declared", "value", "told"),
    [
        (str, "a" * 2049, "has 2049 bytes; the limit is 2048"),
        (str, "\ud800", "is not valid Unicode"),
        (int, 2**63, "does not fit 64 bits"),
    ],
    ids=["long", "surrogate", "large"],
)
def test_a_part_of_a_key_has_limits(declared: Any, value: Any, told: str) -> None:
    with pytest.raises(BadQuery, match=told):
        column(declared).key_part(value)

"""Increments by themselves: what a row is with them, and that none of them fails."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from itertools import permutations
from typing import Any

import msgspec
import pytest

from styx.relational.increment import DECIMAL_DIGITS_MAX, INT_MAX, INT_MIN, Increment, incremented
from styx.relational.row_type import RowType


class Total(msgspec.Struct, frozen=True):
    seller: int
    orders: int = 0
    amount: Decimal = Decimal(0)
    weight: float = 0.0


@dataclasses.dataclass(frozen=True)
class Plain:
    seller: int
    orders: int = 0


TOTAL = RowType("shop/totals", Total)
ZERO = TOTAL.encode(Total(7))


def after(row: Total | None, *deltas: dict[str, Any], zero: bytes | None = None, count: str | None = None) -> Any:
    data = None if row is None else TOTAL.encode(row)
    found = incremented(data, [Increment(TOTAL, each, zero, count) for each in deltas])
    return None if found is None else TOTAL.decode(found)


def test_the_sum_has_the_bytes_of_the_row_that_has_it() -> None:
    with_delta = incremented(
        TOTAL.encode(Total(1, 2, Decimal("1.50"))), [Increment(TOTAL, {"amount": Decimal("-0.5")})]
    )
    assert with_delta == TOTAL.encode(Total(1, 2, Decimal("1.00")))
    assert incremented(TOTAL.encode(Total(1)), []) == TOTAL.encode(Total(1))
    assert incremented(None, []) is None


def test_a_dataclass_can_be_added_to() -> None:
    plain = RowType("shop/plain", Plain)
    assert incremented(plain.encode(Plain(1, 2)), [Increment(plain, {"orders": 3})]) == plain.encode(Plain(1, 5))


def test_several_increments_are_added_in_their_order() -> None:
    tiny = {"weight": 1e-16}
    assert after(Total(1), {"weight": 1.0}, tiny, tiny).weight == 1.0
    assert after(Total(1), tiny, tiny, {"weight": 1.0}).weight > 1.0


def test_ints_stay_within_64_bits() -> None:
    assert after(Total(1, INT_MAX), {"orders": 1}).orders == INT_MAX
    assert after(Total(1, INT_MIN + 1), {"orders": -2}).orders == INT_MIN


def test_decimals_keep_their_digits_and_never_fail() -> None:
    long = Decimal("9" * 60)
    assert after(Total(1, 0, long), {"amount": Decimal(1)}).amount == Decimal("1" + "0" * 60)
    longer = after(Total(1, 0, Decimal("1E+1000")), {"amount": Decimal(1)}).amount
    assert len(longer.as_tuple().digits) == DECIMAL_DIGITS_MAX
    assert after(Total(1, 0, Decimal("NaN")), {"amount": Decimal(1)}).amount.is_nan()


def test_a_row_of_a_view_appears_and_vanishes_with_its_count() -> None:
    one, less = {"orders": 1, "amount": Decimal("2.5")}, {"orders": -1, "amount": Decimal("-2.5")}
    view: dict[str, Any] = {"zero": ZERO, "count": "orders"}
    assert after(None, one, **view) == Total(7, 1, Decimal("2.5"))
    assert after(Total(7, 1, Decimal("2.5")), less, **view) is None
    assert after(Total(7, 1, Decimal("2.5")), less, one, **view) == Total(7, 1, Decimal("2.5"))
    for order in permutations([one, one, less]):
        assert after(Total(7, 1, Decimal("2.5")), *order, **view) == Total(7, 2, Decimal("5.0"))


def test_a_row_of_a_view_begins_anew_when_it_was_gone() -> None:
    """So its bytes do not depend on what it was before."""
    exact = after(Total(7, 1, Decimal("1.00")), {"orders": -1}, {"orders": 1}, zero=ZERO, count="orders")
    assert str(exact.amount) == "0"


def test_a_missing_row_without_a_beginning_is_no_increment() -> None:
    with pytest.raises(AssertionError, match="missing"):
        after(None, {"orders": 1})

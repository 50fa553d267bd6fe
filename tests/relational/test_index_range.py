"""What is greater than every value: bounds of ranges are tuples that end with it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from styx.relational.index_range import TOP


@pytest.mark.parametrize(
    "value", [0, "", b"", Decimal(1), 1.5, datetime(2026, 1, 1, tzinfo=UTC), (), ((),), True], ids=repr
)
def test_top_is_greater_than_every_value(value: Any) -> None:
    top = (TOP,)
    assert (value,) < top
    assert (value,) <= top
    assert top > (value,)
    assert top >= (value,)
    assert not top < (value,)
    assert not top <= (value,)
    assert not (value,) > top
    assert not (value,) >= top
    assert sorted([top, (value,)]) == [(value,), top]


def test_top_equals_itself() -> None:
    assert (TOP,) == (TOP,)
    assert (TOP,) <= (TOP,)
    assert not (TOP,) < (TOP,)
    assert (1, TOP) < (2,)

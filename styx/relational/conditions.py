"""The comparisons of a query other than equality: `select(price=at_least(100))`.

A column that is None satisfies none of them, as in SQL; `select(voucher=None)` asks for None.
"""

from __future__ import annotations

from typing import Any, Final

from styx.errors import BadQuery
from styx.values.codec import shown

OPERATIONS: Final = ("between", "at_least", "above", "at_most", "below", "prefix")


class Comparison:
    """One comparison with a column. `low` and `high` are the values that it was given; None where there is no bound."""

    __slots__ = ("high", "low", "operation")

    def __init__(self, operation: str, low: Any = None, high: Any = None) -> None:
        self.operation = operation
        self.low = low
        self.high = high

    def __repr__(self) -> str:
        values = [shown(value) for value in (self.low, self.high) if value is not None]
        return f"{self.operation}({', '.join(values)})"


def between(low: Any, high: Any) -> Any:
    """From `low` to `high`, both included."""
    return Comparison("between", _bound(low), _bound(high))


def at_least(low: Any) -> Any:
    """`low` or more."""
    return Comparison("at_least", _bound(low))


def above(low: Any) -> Any:
    """More than `low`."""
    return Comparison("above", _bound(low))


def at_most(high: Any) -> Any:
    """`high` or less."""
    return Comparison("at_most", high=_bound(high))


def below(high: Any) -> Any:
    """Less than `high`."""
    return Comparison("below", high=_bound(high))


def prefix(beginning: str | bytes) -> Any:
    """A text, or bytes, that begins so."""
    return Comparison("prefix", _bound(beginning))


def _bound(value: Any) -> Any:
    if value is None or isinstance(value, Comparison):
        raise BadQuery(f"a column is compared with a value, not with {shown(value)}; `column=None` asks for None")
    return value

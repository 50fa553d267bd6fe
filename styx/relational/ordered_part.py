"""The values of a column as parts of keys that are in the order of the values: for what the engine keeps in the order
of its keys, as the entries of a ranking or of an index over the app.

The comparables of most types are such parts. A float becomes a whole number, and a Decimal a text.
"""

from __future__ import annotations

from decimal import Decimal
from struct import Struct
from typing import Any, Final

from styx.errors import BadQuery
from styx.relational.columns import Column
from styx.values.codec import shown

DIGITS_MAX: Final = 40
"""Digits that such a Decimal may have before the point, and behind it: as those that a view adds up."""
_FLOAT: Final = Struct(">d")
_BITS: Final = Struct(">q")
_ALL_BUT_SIGN: Final = 2**63 - 1
_FLIPPED: Final = str.maketrans("0123456789", "9876543210")
_AFTER_DIGITS: Final = "~"
"""Ends the digits of a number below 0, where the one with more digits comes first."""
_OTHERS: Final = ("Decimal", "float")
ORDERED_TYPES: Final = "int, Decimal, float, str, bool, date, datetime, UUID and enums of int or str"
"""As messages name the types of columns with such parts."""


def has_parts(column: Column) -> bool:
    """Whether the column's type is one of them."""
    return column.kind is not None and (column.kind.in_keys or column.kind.name in _OTHERS)


def part_class(column: Column) -> type:
    """The class of the parts: str or int."""
    kind = column.kind
    assert kind is not None, "a declaration checks it"
    if kind.in_keys:
        return kind.compared_as
    return int if kind.compared_as is float else str


def part_of(column: Column, value: Any) -> str | int:
    """The part of a value other than None; raises `BadQuery`."""
    kind = column.kind
    assert kind is not None, "a declaration checks it"
    if kind.in_keys:
        return column.key_part(value)
    bare = column.bare(value)
    return _of_float(column, bare) if kind.compared_as is float else _of_decimal(column, Decimal(bare))


def value_of(column: Column, part: Any) -> Any:
    """The value of a part."""
    kind = column.kind
    assert kind is not None, "a declaration checks it"
    if kind.in_keys:
        return column.from_part(part)
    return _to_float(part) if kind.compared_as is float else _to_decimal(part)


def _of_float(column: Column, value: float) -> int:
    """A whole number of 64 bits, in the order of the floats."""
    try:
        packed = _FLOAT.pack(value + 0.0)  # -0.0 is 0.0
    except OverflowError:  # a query can ask for an int
        raise BadQuery(f"column {column.name!r} is of type float, and {shown(value)} is too large for one") from None
    bits: int = _BITS.unpack(packed)[0]
    return bits if bits >= 0 else bits ^ _ALL_BUT_SIGN


def _to_float(part: int) -> float:
    value: float = _FLOAT.unpack(_BITS.pack(part if part >= 0 else part ^ _ALL_BUT_SIGN))[0]
    return value


def _of_decimal(column: Column, value: Decimal) -> str:
    """A text in the order of the numbers: sign, number of digits before the point, digits."""
    if not (value.is_finite() and (not value or -DIGITS_MAX <= value.adjusted() < DIGITS_MAX)):
        raise _out_of_bounds(column, value)
    sign, figures, exponent = value.as_tuple()
    assert type(exponent) is int, "of a finite number"
    digits = "".join(map(str, figures)).lstrip("0").rstrip("0")
    if not digits:
        return "1"
    if len(digits) - value.adjusted() - 1 > DIGITS_MAX:
        raise _out_of_bounds(column, value)
    before = value.adjusted() + DIGITS_MAX
    if sign:
        return f"0{99 - before:02}{digits.translate(_FLIPPED)}{_AFTER_DIGITS}"
    return f"2{before:02}{digits}"


def _out_of_bounds(column: Column, value: Decimal) -> BadQuery:
    return BadQuery(
        f"column {column.name!r}: {shown(value)} has no place in its order, where a number has at most {DIGITS_MAX} "
        "digits before the point and behind it"
    )


def _to_decimal(part: str) -> Decimal:
    if part == "1":
        return Decimal(0)
    negative = part[0] == "0"
    digits = part[3:-1].translate(_FLIPPED) if negative else part[3:]
    before = 99 - int(part[1:3]) if negative else int(part[1:3])
    exponent = before - DIGITS_MAX - len(digits) + 1
    figures = digits + "0" * max(exponent, 0)
    return Decimal((int(negative), tuple(map(int, figures)), min(exponent, 0)))

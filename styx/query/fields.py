"""The columns in which state is shown, and what makes a column's values of stored ones: of values that the app's types
have decoded, or of plain data as it is stored.

A value in a column is None, or of the one Python type of the column's kind. What has no such kind is of the kind
`json`: anything that has a JSON form, which `json_of` gives.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from styx.errors import UnsupportedValue
from styx.gateway.status import with_text_keys
from styx.relational.columns import Column
from styx.values.custom_types import enc_hook, in_order

JSON: Final = "json"
_ENUM: Final = " enum "
_OPTIONAL: Final = " | None"
_encode = msgspec.json.Encoder(enc_hook=enc_hook).encode


class Field(NamedTuple):
    """A column: its name, and the kind of its values: int, str, bool, bytes, float, Decimal, date, datetime, naive
    datetime, UUID (its text) or json.
    """

    name: str
    kind: str


def _number(value: Any) -> float:
    if type(value) in (int, float):
        return float(value)
    raise TypeError(f"{type(value).__name__} is no number")


def _decimal(value: Any) -> Decimal:
    return value if type(value) is Decimal else Decimal(str(value))


def _date(value: Any) -> date:
    return date.fromisoformat(value) if type(value) is str else value


def _aware(value: Any) -> datetime:
    found = datetime.fromisoformat(value) if type(value) is str else value
    return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _naive(value: Any) -> datetime:
    return datetime.fromisoformat(value) if type(value) is str else value


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _uuid(value: Any) -> str:
    return str(UUID(value)) if type(value) is str else str(value)


_KINDS: Final[dict[str, tuple[type, Callable[[Any], Any]]]] = {
    "int": (int, _bare),
    "str": (str, _bare),
    "bool": (bool, _bare),
    "bytes": (bytes, _bare),
    "float": (float, _number),
    "Decimal": (Decimal, _decimal),
    "date": (date, _date),
    "datetime": (datetime, _aware),
    "naive datetime": (datetime, _naive),
    "UUID": (str, _uuid),
}


def kind_of(type_name: str) -> str:
    """The kind of a column whose type has this name in the description of a table, or in messages."""
    name = type_name.removesuffix(_OPTIONAL).partition(_ENUM)[0]
    return name if name in _KINDS else JSON


def field_of(column: Column) -> Field:
    """The field of a declared column."""
    return Field(column.name, kind_of(column.type_name))


def shown_value(field: Field, value: Any) -> Any:
    """The value in the field's column, of a decoded or a plain stored one; raises `UnsupportedValue`."""
    if value is None or value is msgspec.UNSET:
        return None
    if field.kind == JSON:
        return value
    wanted, convert = _KINDS[field.kind]
    if type(value) is wanted and field.kind not in ("datetime", "UUID"):
        return value
    try:
        found = convert(value)
        if type(found) is wanted:
            return found
        why = f"it is of type {type(found).__name__}"
    except (ValueError, TypeError, ArithmeticError, AttributeError) as error:
        why = str(error)
    raise UnsupportedValue(f"column {field.name!r} is of type {field.kind}, and a stored value is not: {why}")


def json_of(value: Any) -> bytes:
    """The JSON of a value or of a record by names, the same each time: sets are sorted, bytes are base64, times are ISO
    8601, a Decimal is its text, NaN is null. Raises `UnsupportedValue` for what has none.
    """
    try:
        value = in_order(value)
        try:
            return _encode(value)
        except TypeError:
            return _encode(with_text_keys(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise UnsupportedValue(f"it has no JSON form: {error}") from None


def unique_names(wanted: list[str], taken: set[str], before: str) -> list[str]:
    """These names, each with `before` before it as often as needed for a name that is not taken."""
    return [_not_in(taken, name, before) for name in wanted]


def _not_in(taken: set[str], name: str, before: str) -> str:
    while name in taken:
        name = before + name
    return name

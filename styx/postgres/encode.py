"""Columns of Arrow as values of the protocol, in PostgreSQL's text and binary formats, a whole batch at once."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from styx.postgres.sql_errors import DATETIME_OVERFLOW, FEATURE_NOT_SUPPORTED, OUT_OF_RANGE, SqlError
from styx.postgres.types import ColumnType
from styx.postgres.wire import NULL, data_row, format_of, value
from styx.query.fields import json_of

if TYPE_CHECKING:
    import pyarrow as pa

_EPOCH_DAYS: Final = 10_957
"""From 1970 to 2000, where PostgreSQL's dates begin."""
_EPOCH_MICROSECONDS: Final = _EPOCH_DAYS * 86_400 * 10**6
_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_UNIX: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is written behind it
_UNITS: Final = {"s": 10**6, "ms": 10**3, "us": 1}

Encoder = Callable[[Any], bytes]


def data_rows(batch: pa.RecordBatch, types: Sequence[ColumnType], formats: Sequence[int]) -> list[bytes]:
    """The batch's rows as messages; raises `SqlError` for a value that PostgreSQL's type cannot hold."""
    if not types:
        return [data_row(())] * batch.num_rows
    columns = [
        encoded(column, kind, format_of(formats, at))
        for at, (column, kind) in enumerate(zip(batch.columns, types, strict=True))
    ]
    return [data_row(row) for row in zip(*columns, strict=True)]


def static_rows(rows: Iterable[Sequence[Any]], types: Sequence[ColumnType], formats: Sequence[int]) -> list[bytes]:
    """Rows of plain values as messages; no lists."""
    encoders = [(_BINARY if format_of(formats, at) else _TEXT)[each.element.name] for at, each in enumerate(types)]
    return [
        data_row([NULL if each is None else value(encode(each)) for encode, each in zip(encoders, row, strict=True)])
        for row in rows
    ]


def encoded(column: pa.Array, kind: ColumnType, format: int) -> list[bytes]:
    """The values of a column, each with its length in front."""
    name = kind.element.name
    encode = (_BINARY if format else _TEXT)[name]
    if not kind.is_list:
        return [NULL if each is None else value(encode(each)) for each in _plain(column, name)]
    if format:
        lists = _lists(column, name)
        return [NULL if each is None else value(_binary_list(each, kind.element.oid, encode)) for each in lists]
    return [NULL if each is None else value(_text_list(each, encode)) for each in _lists(column, name)]


def _lists(column: pa.Array, name: str) -> list[list[Any] | None]:
    members = iter(_plain(column.flatten(), name))
    lengths = column.value_lengths().to_pylist()
    return [None if length is None else [next(members) for _ in range(length)] for length in lengths]


def _plain(column: pa.Array, name: str) -> list[Any]:
    """The values as what the encoders take: times as numbers since 1970, for Python's do not reach as far."""
    import pyarrow as pa

    if name == "date":
        found: list[Any] = column.cast(pa.int32()).to_pylist()
        return found
    if name == "time":
        return [
            None if each is None else each * _UNITS.get(column.type.unit, 1)
            for each in column.cast(pa.int64()).to_pylist()
        ]
    if name in ("timestamp", "timestamptz"):
        return _microseconds(column.cast(pa.int64()).to_pylist(), column.type.unit)
    found = column.to_pylist()
    return found


def _microseconds(values: list[int | None], unit: str) -> list[int | None]:
    if unit == "ns":
        return [None if each is None else each // 1_000 for each in values]
    times = _UNITS[unit]
    return [None if each is None else each if abs(each) == _INT64_MAX else each * times for each in values]


# Text ----------------------------------------------------------------------------------------------------------------


def _bool_text(value: bool) -> bytes:
    return b"t" if value else b"f"


def _number_text(value: Any) -> bytes:
    return str(value).encode()


def _plain_text(value: Any) -> bytes:
    # PostgreSQL's texts have no zero, and clients end them there.
    return str(value).encode(errors="replace").replace(b"\0", b"")


def _float_text(value: float) -> bytes:
    if value != value:  # NaN
        return b"NaN"
    if value in (float("inf"), float("-inf")):
        return b"Infinity" if value > 0 else b"-Infinity"
    return repr(value).removesuffix(".0").encode()


def _float4_text(value: float) -> bytes:
    """With as few digits as say which number of 32 bits it is."""
    if abs(value) in (0.0, float("inf")) or value != value:
        return _float_text(value)
    digits = next(
        each for each in range(6, 10) if struct.pack("f", float(f"{value:.{each}g}")) == struct.pack("f", value)
    )
    return _float_text(float(f"{value:.{digits}g}"))


def _numeric_text(value: Any) -> bytes:
    """Without the zeros at the end, which the columns' scale of 18 digits would have everywhere."""
    if not isinstance(value, Decimal):
        return str(value).encode()
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()


def _bytea_text(value: bytes) -> bytes:
    return b"\\x" + value.hex().encode()


def _date_text(value: int) -> bytes:
    if abs(value) >= _INT32_MAX:
        return b"infinity" if value > 0 else b"-infinity"
    try:
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat().encode()
    except OverflowError:
        raise _too_far() from None


def _time_text(value: int) -> bytes:
    seconds, micros = divmod(value, 10**6)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return (text + _fraction(micros)).encode()


def _fraction(micros: int) -> str:
    return f".{micros:06}".rstrip("0") if micros else ""


def _timestamp_text(value: int) -> bytes:
    if abs(value) == _INT64_MAX:
        return b"infinity" if value > 0 else b"-infinity"
    try:
        at = _UNIX + timedelta(microseconds=value)
    except OverflowError:
        raise _too_far() from None
    return (at.isoformat(" ", "seconds") + _fraction(at.microsecond)).encode()


def _timestamptz_text(value: int) -> bytes:
    found = _timestamp_text(value)
    return found if found.endswith(b"infinity") else found + b"+00"


def _too_far() -> SqlError:
    return SqlError(DATETIME_OVERFLOW, "a time is before the year 1 or after 9999: cast it to VARCHAR to see it")


def _interval_parts(value: Any) -> tuple[int, int, int]:
    """Months, days and microseconds."""
    if isinstance(value, timedelta):
        return 0, value.days, value.seconds * 10**6 + value.microseconds
    return value.months, value.days, value.nanoseconds // 1_000


def _interval_text(value: Any) -> bytes:
    months, days, micros = _interval_parts(value)
    years, months = int(months / 12), months - 12 * int(months / 12)
    parts = [
        f"{number} {unit}{'' if number == 1 else 's'}"
        for number, unit in ((years, "year"), (months, "mon"), (days, "day"))
        if number
    ]
    if micros or not parts:
        parts.append(("-" if micros < 0 else "") + _time_text(abs(micros)).decode())
    return " ".join(parts).encode()


def _json_text(value: Any) -> bytes:
    """JSON as it stands, and other values, which have no type here, as JSON."""
    return value.encode() if isinstance(value, str) else json_of(_jsonable(value))


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        # Arrow has maps as lists of pairs.
        return [_jsonable(each) for each in value]
    return value if isinstance(value, bool | int | float | str | bytes | Decimal | None) else str(value)


def _text_list(values: Sequence[Any], encode: Encoder) -> bytes:
    return b"{" + b",".join(b"NULL" if each is None else _member(encode(each)) for each in values) + b"}"


_QUOTED: Final = frozenset(b'{},"\\ \t\r\n\v\f')


def _member(text: bytes) -> bytes:
    if text and text.upper() != b"NULL" and _QUOTED.isdisjoint(text):
        return text
    return b'"' + text.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


_TEXT: Final[dict[str, Encoder]] = {
    "bool": _bool_text,
    "bytea": _bytea_text,
    "int2": _number_text,
    "int4": _number_text,
    "int8": _number_text,
    "float4": _float4_text,
    "float8": _float_text,
    "numeric": _numeric_text,
    "text": _plain_text,
    "char": _plain_text,
    "oid": _number_text,
    "date": _date_text,
    "time": _time_text,
    "timestamp": _timestamp_text,
    "timestamptz": _timestamptz_text,
    "interval": _interval_text,
    "uuid": _plain_text,
    "json": _json_text,
}


# Binary --------------------------------------------------------------------------------------------------------------


def _packed(format: str) -> Encoder:
    pack = struct.Struct(format).pack

    def encode(value: Any) -> bytes:
        try:
            return pack(value)
        except (struct.error, OverflowError):
            raise SqlError(OUT_OF_RANGE, f"{value} does not fit the type that it was told as") from None

    return encode


def _numeric_binary(value: Any) -> bytes:
    """Digits of base 10,000: how many, the weight of the first, the sign, how many decimals are shown."""
    text = _numeric_text(value).decode()
    sign, text = (0x4000, text[1:]) if text.startswith("-") else (0, text)
    whole, _, part = text.partition(".")
    whole = whole.zfill(-(-len(whole) // 4) * 4)
    padded = part.ljust(-(-len(part) // 4) * 4, "0")
    digits = [int(each) for text in (whole, padded) for each in (text[at : at + 4] for at in range(0, len(text), 4))]
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        digits, weight = digits[1:], weight - 1
    while digits and digits[-1] == 0:
        digits.pop()
    if not digits:
        weight, sign = 0, 0
    return struct.pack(f"!HhHH{len(digits)}H", len(digits), weight, sign, len(part), *digits)


def _date_binary(value: int) -> bytes:
    if abs(value) >= _INT32_MAX:
        return struct.pack("!i", _INT32_MAX if value > 0 else -_INT32_MAX - 1)
    return struct.pack("!i", value - _EPOCH_DAYS)


def _timestamp_binary(value: int) -> bytes:
    if abs(value) == _INT64_MAX:
        return struct.pack("!q", _INT64_MAX if value > 0 else -_INT64_MAX - 1)
    if value - _EPOCH_MICROSECONDS < -_INT64_MAX:
        raise _too_far()
    return struct.pack("!q", value - _EPOCH_MICROSECONDS)


def _interval_binary(value: Any) -> bytes:
    months, days, micros = _interval_parts(value)
    return struct.pack("!qii", micros, days, months)


def _uuid_binary(value: Any) -> bytes:
    return UUID(str(value)).bytes


def _binary_list(values: Sequence[Any], oid: int, encode: Encoder) -> bytes:
    has_null = any(each is None for each in values)
    if not values:
        return struct.pack("!iiI", 0, 0, oid)
    head = struct.pack("!iiIii", 1, has_null, oid, len(values), 1)
    return head + b"".join(NULL if each is None else value(encode(each)) for each in values)


_BINARY: Final[dict[str, Encoder]] = {
    "bool": lambda each: b"\1" if each else b"\0",
    "bytea": bytes,
    "int2": _packed("!h"),
    "int4": _packed("!i"),
    "int8": _packed("!q"),
    "float4": _packed("!f"),
    "float8": _packed("!d"),
    "numeric": _numeric_binary,
    "text": _plain_text,
    "char": _plain_text,
    "oid": _packed("!I"),
    "date": _date_binary,
    "time": _packed("!q"),
    "timestamp": _timestamp_binary,
    "timestamptz": _timestamp_binary,
    "interval": _interval_binary,
    "uuid": _uuid_binary,
    "json": _json_text,
}


def check_formats(types: Sequence[ColumnType], formats: Sequence[int]) -> None:
    """Raises `SqlError` if there are neither no formats, nor one, nor one for each column."""
    if len(formats) not in (0, 1, len(types)):
        raise SqlError(FEATURE_NOT_SUPPORTED, f"{len(formats)} formats for a result of {len(types)} columns")

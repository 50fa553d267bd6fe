"""Parameters of clients, in PostgreSQL's text and binary formats, as values for a query: a text, bytes, or None, each
with the expression that casts it to its type.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from styx.postgres.sql_errors import BAD_BINARY, BAD_VALUE, DATETIME_OVERFLOW, UNKNOWN_TYPE, SqlError
from styx.postgres.types import BY_ARRAY, BY_OID, TEXT_OIDS, UNKNOWN_OID, PgType
from styx.postgres.wire import decoded
from styx.query.service import Parameter

_DIGITS_MAX: Final = 38
_NUMERIC: Final = re.compile(r"\s*+([+-]?+)([0-9]*+)\.?+([0-9]*+)\s*+")
_UNIX_2000: Final = datetime(2000, 1, 1, tzinfo=UTC)
_INFINITE_DAYS: Final = 2**31 - 1
_INFINITE_TIME: Final = 2**63 - 1


class Decoded(NamedTuple):
    """A value, and the expression that stands for it in the query, where `{}` is the parameter."""

    value: Parameter
    expression: str


def decode(data: bytes | None, oid: int, format: int) -> Decoded:
    """A parameter's value; raises `SqlError`."""
    if oid in BY_ARRAY:
        element = BY_ARRAY[oid]
        # JSON says where a text ends, whatever is in it.
        expression = f"(CAST({{}} AS JSON)::{element.cast}[])"
        if data is None:
            return Decoded(None, expression)
        values = _binary_array(data, element) if format else _text_array(decoded(data), element)
        return Decoded(msgspec.json.encode(values).decode(), expression)
    kind = BY_OID.get(oid)
    found = None if data is None else _binary(data, oid) if format else _of_text(data, oid)
    if kind is None or oid in TEXT_OIDS:
        return Decoded(found, "{}")
    cast = kind.cast if found is None or kind.name != "numeric" else _numeric_cast(found)
    return Decoded(found, f"CAST({{}} AS {cast})")


def _of_text(data: bytes, oid: int) -> Parameter:
    text = decoded(data)
    if oid != BYTEA:
        return text
    try:
        return bytes.fromhex(text[2:]) if text.startswith("\\x") else _escaped(text)
    except ValueError:
        raise SqlError(BAD_VALUE, "invalid input syntax for type bytea") from None


_ESCAPE: Final = re.compile(r"\\(?:([0-3][0-7]{2})|(\\)|())")


def _escaped(text: str) -> bytes:
    def plain(found: re.Match[str]) -> str:
        if found[2]:
            return "\\"
        return chr(int(found[1], 8))

    return _ESCAPE.sub(plain, text).encode("latin-1")


def _numeric_cast(text: Any) -> str:
    """The decimal that has exactly the number's digits, or a float for what no decimal holds."""
    found = _NUMERIC.fullmatch(text)
    if found is None or not (found[2] or found[3]):
        return "DOUBLE"
    scale, whole = len(found[3]), len(found[2].lstrip("0"))
    width = max(scale + whole, 1)
    return f"DECIMAL({width},{scale})" if width <= _DIGITS_MAX else "DOUBLE"


# Binary --------------------------------------------------------------------------------------------------------------

BYTEA: Final = 17


def _unpacked(format: str) -> Callable[[bytes], Any]:
    unpack = struct.Struct(format).unpack

    def read(data: bytes) -> Any:
        return unpack(data)[0]

    return read


def _bool(data: bytes) -> str:
    return "true" if _unpacked("!b")(data) else "false"


def _float(format: str) -> Callable[[bytes], str]:
    return lambda data: repr(_unpacked(format)(data))


def _number(format: str) -> Callable[[bytes], str]:
    return lambda data: str(_unpacked(format)(data))


def _numeric(data: bytes) -> str:
    count, weight, sign, scale = struct.unpack("!HhHH", data[:8])
    digits = struct.unpack(f"!{count}H", data[8:])
    if sign not in (0, 0x4000):
        return {0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign]
    if any(each > 9_999 for each in digits) or abs(weight) > _DIGITS_MAX or scale > 16_383:
        raise ValueError
    number = sum(each * 10_000 ** (count - 1 - at) for at, each in enumerate(digits))
    shift = 4 * (weight - count + 1)
    number, shift = (number * 10**shift, 0) if shift > 0 else (number, shift)
    text = str(number).rjust(1 - shift, "0")
    text = f"{text[:shift]}.{text[shift:]}" if shift else text
    return ("-" if sign else "") + text


def _date(data: bytes) -> str:
    days = _unpacked("!i")(data)
    if abs(days) >= _INFINITE_DAYS:
        return "infinity" if days > 0 else "-infinity"
    return (date(2000, 1, 1) + timedelta(days=days)).isoformat()


def _timestamp(data: bytes) -> str:
    micros = _unpacked("!q")(data)
    if abs(micros) >= _INFINITE_TIME:
        return "infinity" if micros > 0 else "-infinity"
    return (_UNIX_2000 + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(" ")


def _timestamptz(data: bytes) -> str:
    found = _timestamp(data)
    return found if found.endswith("infinity") else found + "+00"


def _time(data: bytes) -> str:
    micros = _unpacked("!q")(data)
    if not 0 <= micros < 86_400 * 10**6:
        raise ValueError
    return (_UNIX_2000 + timedelta(microseconds=micros)).time().isoformat()


def _interval(data: bytes) -> str:
    micros, days, months = struct.unpack("!qii", data)
    return f"{months} months {days} days {micros} microseconds"


def _uuid(data: bytes) -> str:
    return str(UUID(bytes=data))


def _jsonb(data: bytes) -> str:
    if data[:1] != b"\1":
        raise ValueError
    return decoded(data[1:])


_BINARY: Final[dict[int, Callable[[bytes], Parameter]]] = {
    16: _bool,
    BYTEA: bytes,
    18: decoded,
    19: decoded,
    20: _number("!q"),
    21: _number("!h"),
    23: _number("!i"),
    25: decoded,
    26: _number("!I"),
    114: decoded,
    700: _float("!f"),
    701: _float("!d"),
    UNKNOWN_OID: decoded,
    1042: decoded,
    1043: decoded,
    1082: _date,
    1083: _time,
    1114: _timestamp,
    1184: _timestamptz,
    1186: _interval,
    1700: _numeric,
    2950: _uuid,
    3802: _jsonb,
}


def _binary(data: bytes, oid: int) -> Parameter:
    read = _BINARY.get(oid)
    if read is None:
        raise SqlError(
            UNKNOWN_TYPE, f"a parameter of the type with oid {oid} has no binary format here: send it as text"
        )
    try:
        return read(data)
    except OverflowError:
        raise SqlError(DATETIME_OVERFLOW, "a time is before the year 1 or after 9999") from None
    except (struct.error, ValueError, KeyError):
        raise SqlError(BAD_BINARY, f"incorrect binary data format of a {BY_OID[oid].name}") from None


# Arrays --------------------------------------------------------------------------------------------------------------


def _binary_array(data: bytes, element: PgType) -> list[Any]:
    try:
        dimensions, _, _ = struct.unpack("!iiI", data[:12])
        if dimensions == 0:
            return []
        length, _ = struct.unpack("!ii", data[12:20])
        if dimensions != 1 or not 0 <= length <= len(data):
            raise SqlError(BAD_BINARY, "only arrays of one dimension are taken")
        at, found = 20, []
        for _ in range(length):
            (size,) = struct.unpack("!i", data[at : at + 4])
            at += 4
            if size != -1 and not 0 <= size <= len(data) - at:
                raise SqlError(BAD_BINARY, "an array ends before its members do")
            found.append(None if size == -1 else _in_json(_binary(data[at : at + size], element.oid)))
            at += max(size, 0)
    except struct.error:
        raise SqlError(BAD_BINARY, "an array ends before its members do") from None
    return found


def _in_json(value: Parameter) -> Any:
    if isinstance(value, bytes):
        raise SqlError(UNKNOWN_TYPE, "arrays of bytea are not taken")
    return value


_MEMBER: Final = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^",{}\\\s]++(?:\s++[^",{}\\\s]++)*+))\s*+', re.DOTALL)
_BACKSLASH: Final = re.compile(r"\\(.)", re.DOTALL)


def _text_array(text: str, element: PgType) -> list[Any]:
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}") and len(text) > 1):
        raise SqlError(BAD_VALUE, "malformed array literal: it is {…}, of one dimension")
    if element.oid == BYTEA:
        raise SqlError(UNKNOWN_TYPE, "arrays of bytea are not taken")
    if not text[1:-1].strip():
        return []
    found: list[Any] = []
    at, end = 1, len(text) - 1
    while True:
        member = _MEMBER.match(text, at, end)
        if member is None:
            raise SqlError(BAD_VALUE, "malformed array literal: it is {…}, of one dimension")
        quoted, bare = member[1], member[2]
        found.append(_BACKSLASH.sub(r"\1", quoted) if quoted is not None else None if bare.upper() == "NULL" else bare)
        at = member.end()
        if at == end:
            return found
        if text[at] != ",":
            raise SqlError(BAD_VALUE, "malformed array literal: it is {…}, of one dimension")
        at += 1

"""The protocol's messages as bytes: those of clients are read, those of a server written (PostgreSQL's documentation,
"Message Formats"). Any bytes give a message or raise `ProtocolError`; SQL that is no UTF-8 raises `SqlError`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from styx.postgres.sql_errors import BAD_ENCODING, ProtocolError, SqlError

STARTUP_BYTES_MAX: Final = 10_000
"""Of a message before the client has proved itself."""
MESSAGE_BYTES_MAX: Final = 4 * 2**20
"""Of any other message of a client."""
HEAD_BYTES: Final = 5
_LENGTH_BYTES: Final = 4


class Reader:
    """Reads the fields of a message one after the other; raises `ProtocolError` where they are not there."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int16(self) -> int:
        """An unsigned number of two bytes."""
        return int.from_bytes(self.take(2), "big")

    def int32(self) -> int:
        """A signed number of four bytes."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def take(self, length: int) -> bytes:
        """So many bytes."""
        if not 0 <= length <= len(self._data) - self._at:
            raise ProtocolError("a message ends before its fields do")
        self._at += length
        return self._data[self._at - length : self._at]

    def text(self) -> str:
        """A string that a zero byte ends."""
        end = self._data.find(0, self._at)
        if end < 0:
            raise ProtocolError("a string of a message has no end")
        found, self._at = self._data[self._at : end], end + 1
        return decoded(found)

    def value(self) -> bytes | None:
        """A value behind its length, or NULL."""
        length = self.int32()
        return None if length == -1 else self.take(length)

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Nothing may be left."""
        if self._at < len(self._data):
            raise ProtocolError("a message goes on behind its fields")


def decoded(data: bytes) -> str:
    """Text of a client; raises `SqlError`."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SqlError(BAD_ENCODING, f"invalid byte sequence for encoding UTF8 at byte {error.start}") from None
    if "\0" in text:
        raise SqlError(BAD_ENCODING, "a text holds a zero byte")
    return text


def take_startup(buffer: bytearray) -> bytes | None:
    """Takes a message of the beginning, which has no letter, out of the buffer; None if it has not come whole."""
    return _take(buffer, 0, STARTUP_BYTES_MAX)


def take_message(buffer: bytearray, bytes_max: int) -> tuple[bytes, bytes] | None:
    """Takes a message out of the buffer: its letter and its fields; None if it has not come whole."""
    kind = bytes(buffer[:1])
    data = _take(buffer, 1, bytes_max)
    return None if data is None else (kind, data)


def _take(buffer: bytearray, start: int, bytes_max: int) -> bytes | None:
    if len(buffer) < start + _LENGTH_BYTES:
        return None
    length = int.from_bytes(buffer[start : start + _LENGTH_BYTES], "big")
    if not _LENGTH_BYTES <= length <= bytes_max:
        raise ProtocolError(f"a message has {length} bytes: it must have {_LENGTH_BYTES} to {bytes_max}")
    if len(buffer) < start + length:
        return None
    data = bytes(buffer[start + _LENGTH_BYTES : start + length])
    del buffer[: start + length]
    return data


# What clients send ---------------------------------------------------------------------------------------------------


class Parse(NamedTuple):
    """Prepares a statement. `types`: of the first parameters, oids; 0 for one that the server shall find out."""

    name: str
    sql: str
    types: list[int]


class Bind(NamedTuple):
    """Makes a portal of a statement. `formats` and `results` are 0 for text and 1 for binary: none, one for all, or one
    for each.
    """

    portal: str
    statement: str
    formats: list[int]
    values: list[bytes | None]
    results: list[int]


class Named(NamedTuple):
    """What Describe and Close are about: `kind` is S for a statement and P for a portal."""

    kind: str
    name: str


class Execute(NamedTuple):
    """`rows`: how many at most; 0 for all."""

    portal: str
    rows: int


def read_parse(data: bytes) -> Parse:
    reader = Reader(data)
    found = Parse(reader.text(), reader.text(), [reader.int32() & 0xFFFF_FFFF for _ in range(reader.int16())])
    reader.end()
    return found


def read_bind(data: bytes) -> Bind:
    reader = Reader(data)
    portal, statement = reader.text(), reader.text()
    formats = [reader.int16() for _ in range(reader.int16())]
    values = [reader.value() for _ in range(reader.int16())]
    results = [reader.int16() for _ in range(reader.int16())]
    reader.end()
    if not {*formats, *results} <= {0, 1}:
        raise ProtocolError("a format is neither 0, text, nor 1, binary")
    if len(formats) not in (0, 1, len(values)):
        raise ProtocolError(f"{len(formats)} formats for {len(values)} parameters")
    return Bind(portal, statement, formats, values, results)


def read_named(data: bytes) -> Named:
    reader = Reader(data)
    found = Named(reader.take(1).decode("latin-1"), reader.text())
    reader.end()
    if found.kind not in ("S", "P"):
        raise ProtocolError(f"{found.kind!r} is neither S, a statement, nor P, a portal")
    return found


def read_execute(data: bytes) -> Execute:
    reader = Reader(data)
    found = Execute(reader.text(), reader.int32())
    reader.end()
    return found


def read_query(data: bytes) -> str:
    reader = Reader(data)
    found = reader.text()
    reader.end()
    return found


def read_sasl_initial(data: bytes) -> tuple[str, bytes]:
    """The mechanism, and the client's first message, empty if it has none yet."""
    reader = Reader(data)
    mechanism, first = reader.text(), reader.value()
    reader.end()
    return mechanism, first or b""


def format_of(formats: Sequence[int], at: int) -> int:
    """The format of the value with this number, from 0 on."""
    if not formats:
        return 0
    return formats[0] if len(formats) == 1 else formats[at]


# What a server sends -------------------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of a result: its name, its type's oid, its size (-1 for various) and modifier (-1 for none)."""

    name: str
    oid: int
    size: int
    modifier: int = -1


def message(kind: bytes, *fields: bytes) -> bytes:
    """A message of these fields."""
    data = b"".join(fields)
    return kind + (len(data) + _LENGTH_BYTES).to_bytes(_LENGTH_BYTES, "big") + data


def _text(value: str) -> bytes:
    return value.replace("\0", "").encode(errors="replace") + b"\0"


def _int(value: int) -> bytes:
    return struct.pack("!i", value)


def _short(value: int) -> bytes:
    return struct.pack("!H", value)


def authentication(code: int, data: bytes = b"") -> bytes:
    return message(b"R", _int(code), data)


def sasl_mechanisms(names: Iterable[str]) -> bytes:
    return authentication(10, b"".join(map(_text, names)) + b"\0")


def sasl_continue(data: bytes) -> bytes:
    return authentication(11, data)


def sasl_final(data: bytes) -> bytes:
    return authentication(12, data)


AUTHENTICATED: Final = authentication(0)
PARSED: Final = message(b"1")
BOUND: Final = message(b"2")
CLOSED: Final = message(b"3")
NO_DATA: Final = message(b"n")
SUSPENDED: Final = message(b"s")
EMPTY_QUERY: Final = message(b"I")


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", _text(name), _text(value))


def backend_key(pid: int, secret: bytes) -> bytes:
    return message(b"K", _int(pid), secret)


def negotiate(version: int, options: Sequence[str]) -> bytes:
    return message(b"v", _int(version), _int(len(options)), *map(_text, options))


def ready(status: str) -> bytes:
    return message(b"Z", status.encode())


def complete(tag: str) -> bytes:
    return message(b"C", _text(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", _short(len(oids)), struct.pack(f"!{len(oids)}I", *oids))


def row_description(columns: Sequence[Column], formats: Sequence[int]) -> bytes:
    parts = [_short(len(columns))]
    for at, each in enumerate(columns):
        numbers = struct.pack("!ihIhih", 0, 0, each.oid, each.size, each.modifier, format_of(formats, at))
        parts += [_text(each.name), numbers]
    return message(b"T", *parts)


def data_row(values: Sequence[bytes]) -> bytes:
    """A row of values that have their lengths in front: see `value`."""
    return message(b"D", _short(len(values)), *values)


NULL: Final = _int(-1)


def value(data: bytes) -> bytes:
    """A value of a row, with its length in front."""
    return _int(len(data)) + data


def _report(kind: bytes, fields: Mapping[str, str]) -> bytes:
    return message(kind, *(name.encode() + _text(text) for name, text in fields.items() if text), b"\0")


def error_response(error: SqlError, severity: str = "ERROR") -> bytes:
    position = str(error.position) if error.position else ""
    fields = {"S": severity, "V": severity, "C": error.code, "M": error.message, "H": error.hint, "P": position}
    return _report(b"E", fields)


def notice(text: str, code: str = "00000", severity: str = "WARNING") -> bytes:
    return _report(b"N", {"S": severity, "V": severity, "C": code, "M": text})

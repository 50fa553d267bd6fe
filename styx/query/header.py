"""What the process of a query is told first, the query, all tables, and what it may use; and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from styx.query.relations import Table
from styx.query.service import Asked, QueryFailed

INTEGER_MIN: Final = -(2**63)
INTEGER_MAX: Final = 2**63 - 1


class Header(msgspec.Struct, frozen=True):
    """`Asked`, with the tables, the memory that the process may take, and its time."""

    sql: str
    parameters: list[Any]
    describe: bool
    prelude: list[str]
    catalog: bool
    tables: list[Table]
    memory_bytes: int
    seconds: float


class Needs(msgspec.Struct, frozen=True):
    """The numbers of the tables that the query reads, and their columns that it may read, in small letters; None for
    all.
    """

    tables: list[int]
    columns: list[str] | None


def header_bytes(asked: Asked, tables: Sequence[Table], memory_bytes: int, seconds: float) -> bytes:
    """The header of a query, encoded; raises `QueryFailed` for a parameter that has more than 64 bits or is no text."""
    parameters = list(asked.parameters)
    for at, value in enumerate(parameters, 1):
        if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
            raise QueryFailed(f"${at} is not of 64 bits: give larger numbers as text")
    header = Header(
        asked.sql,
        parameters,
        asked.describe,
        list(asked.prelude),
        asked.catalog,
        list(tables),
        memory_bytes,
        seconds,
    )
    try:
        return msgspec.msgpack.encode(header)
    except UnicodeEncodeError:
        raise QueryFailed("the query or a parameter holds half of a surrogate pair, which is no text") from None


def header_of(data: bytes) -> Header:
    """The header that was encoded."""
    return msgspec.msgpack.decode(data, type=Header)

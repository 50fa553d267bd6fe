"""A page of a query's rows, and the cursor by which the next page is asked for.

A cursor is a text that holds the place in its index behind which the next page begins. It stays valid whatever happens
to the rows, and may be given to a client.
"""

from __future__ import annotations

import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from decimal import Decimal
from typing import Any, Generic, TypeVar

import msgspec

from styx.errors import BadQuery
from styx.relational.index_range import Position
from styx.relational.row_indexes import RowIndex
from styx.relational.table import Table
from styx.values.codec import shown

_encode = msgspec.msgpack.Encoder(decimal_format="string").encode


T = TypeVar("T")


class Page(msgspec.Struct, Generic[T]):
    """`rows` in the order of the query. `next` is what to give as `after` for the next page, None if there is none."""

    rows: list[T]
    next: str | None


def cursor_of(index: RowIndex, position: Position) -> str:
    """The cursor behind a position of an index."""
    return urlsafe_b64encode(_encode([index.name, position])).decode().rstrip("=")


def position_of(table: Table, index: RowIndex, cursor: Any) -> Position:
    """The position that a cursor holds; raises `BadQuery` if it is none of this index."""
    types = [column.comparable_type for column in (*index.columns[len(index.equal) :], *_rest(table, index))]
    try:
        padded = cursor.encode() + b"=" * (-len(cursor) % 4)
        name, position = msgspec.msgpack.decode(urlsafe_b64decode(padded), type=tuple[str, tuple[tuple(types)]])  # type: ignore[misc]
    except (AttributeError, ValueError, msgspec.MsgspecError):
        raise BadQuery(f"table {table.full_name}: {shown(cursor)} is no cursor of a page of this query") from None
    if name != index.name:
        raise BadQuery(f"table {table.full_name}: the cursor is of index {name!r}, and the query reads {index.name!r}")
    found = tuple([tuple(value) if type(value) is list else value for value in position])
    if any(_is_nan(part) for value in found for part in (value if type(value) is tuple else (value,))):
        raise BadQuery(f"table {table.full_name}: a cursor holds a NaN, which has no place in an order")
    return found


def _is_nan(value: Any) -> bool:
    # Nothing would lie behind it: the page would conflict with no change of the rows that it gives.
    return value.is_nan() if type(value) is Decimal else type(value) is float and math.isnan(value)


def _rest(table: Table, index: RowIndex) -> tuple[Any, ...]:
    return () if index.number == 0 else table.key

"""Helpers shared by the transactions' functions: the row and the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from styx import Context

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

R = TypeVar("R")


class NoSuchRow(Exception):
    """A transaction needs a row that is not there."""


def there(ctx: Context, table: str, row: R | None, *key: int | str) -> R:
    """The row of `table`, if it is there: the entity's own one, or the one with this primary key of its table.

    Raises `NoSuchRow`.
    """
    if row is None:
        entity = ctx.key if isinstance(ctx.key, tuple) or not key else (ctx.key,)
        raise NoSuchRow(f"there is no {table} {(*entity, *key) if key else entity}")
    return row


def now_us(ctx: Context) -> int:
    """When the transaction's request arrived, in microseconds since 1970: the same in all of its functions."""
    return (ctx.now() - _EPOCH) // _MICROSECOND

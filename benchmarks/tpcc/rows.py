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


def there(ctx: Context, table: str, row: R | None) -> R:
    """The row of `table` that `ctx` is at, if it is there; raises `NoSuchRow`."""
    if row is None:
        raise NoSuchRow(f"there is no {table} {ctx.key}")
    return row


def now_us(ctx: Context) -> int:
    """When the transaction's request arrived, in microseconds since 1970: the same in all of its functions."""
    return (ctx.now() - _EPOCH) // _MICROSECOND

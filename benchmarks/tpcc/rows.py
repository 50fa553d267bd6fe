"""What the transactions' functions have in common: their row's key, the row and the time. Never reads or writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from styx import Context

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

R = TypeVar("R")


class NoSuchRow(Exception):
    """A transaction needs a row that is not there."""


def key_of(ctx: Context) -> Any:
    """The key of the row that `ctx` is at, as a type checker lets it be taken apart."""
    return ctx.key


def there(ctx: Context, table: str, row: R | None) -> R:
    """The row of `table` that `ctx` is at, if it is there; raises `NoSuchRow`."""
    if row is None:
        raise NoSuchRow(f"there is no {table} {ctx.key}")
    return row


def now_us(ctx: Context) -> int:
    """When the transaction's request arrived, in microseconds since 1970: the same in all of its functions."""
    return (ctx.now() - _EPOCH) // _MICROSECOND

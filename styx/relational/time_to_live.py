"""A time to live: how long a value or a row stays that is not written, as declarations and statements say it.

What ends a life is `styx.model.lifetime`; here is only what may be said.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from styx.errors import ConfigurationError
from styx.values.codec import shown

TTL_MIN: Final = timedelta(seconds=1)
"""The shortest time to live."""
TTL_MAX: Final = timedelta(days=36_500)
"""The longest one."""
EACH: Final = "given"
"""Said of a table: of its rows, those live for a time only that are given one when they are put."""
NONE_US: Final = 0
"""The usual time to live of rows that have none, in microseconds."""

_MICROSECOND: Final = timedelta(microseconds=1)


def is_ttl(ttl: Any) -> bool:
    """Whether this is a time to live."""
    return isinstance(ttl, timedelta) and TTL_MIN <= ttl <= TTL_MAX


def in_us(ttl: timedelta) -> int:
    """A time to live in microseconds."""
    return ttl // _MICROSECOND


def declared_us(what: str, ttl: Any) -> int:
    """An operator's time to live in microseconds, 0 for None; raises `ConfigurationError`."""
    if ttl is None:
        return NONE_US
    if not is_ttl(ttl):
        raise ConfigurationError(f"{what}: {wrong_ttl(ttl)}")
    return in_us(ttl)


def wrong_ttl(ttl: Any, otherwise: str = "") -> str:
    """The error for what is no time to live."""
    return (
        f"ttl= is a timedelta from {TTL_MIN.seconds} second to {TTL_MAX.days} days, such as timedelta(hours=1)"
        f"{otherwise}: got {shown(ttl)}"
    )

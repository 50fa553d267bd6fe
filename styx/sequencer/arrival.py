"""A request record as the log delivered it."""

from __future__ import annotations

import msgspec


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A request record as the log delivered it."""

    offset: int
    timestamp_us: int
    payload: bytes

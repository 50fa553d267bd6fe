"""A request record as the log delivered it."""

from __future__ import annotations

from typing import Any

import msgspec

Recorded = tuple[Any, ...]
"""The fields of an arrival that was taken, in their order: compiled code reaches a Struct's own slowly."""


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A request record as the log delivered it."""

    offset: int
    timestamp_us: int
    payload: bytes

"""A review in a small form that can be compared: as requested, and as found.

The text is known by its CRC, for a run can write gigabytes of texts.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from styx.messages import Reply


class Wanted(NamedTuple):
    """A review that was asked for, by the numbers of its user and movie."""

    user: int
    movie: int
    stars: int
    text: int


Place = tuple[int, int, int]
"""A transaction's in the serial order: epoch, phase and TID."""


class Written(NamedTuple):
    """A review that there is. `timestamp` in milliseconds since 1970."""

    wanted: Wanted
    timestamp: int


def place_of(reply: Reply) -> Place:
    """The transaction's place in the serial order."""
    return reply.epoch, reply.phase, reply.tid


def text_mark(text: str) -> int:
    """A text's CRC."""
    return crc32(text.encode())

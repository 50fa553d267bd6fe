"""Ids of what a function leaves for later, events and calls: an id names its place among all, and ids sort in the
serial order. No two have the same, and a replay makes the same ones.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from styx.model.serial_place import place_text

PLACE_BYTES_MAX: Final = 64
"""Bytes of a place that stand in the id of a call as they are. With the digest of a longer one, a request id has room.
"""
PLACE_DIGEST_BYTES: Final = 16
_USUAL_NUMBERS: Final = tuple([f"{number:08x}" for number in range(256)])


class _Last:
    """The transaction that was asked for last, and how its ids begin: most functions leave several things."""

    __slots__ = ("told",)

    def __init__(self) -> None:
        self.told: tuple[int, int, int, str] = (-1, -1, -1, "")  # in one, because threads share it


_last: Final = _Last()


def event_id(epoch: int, part: int, tid: int, place: bytes, number: int) -> str:
    """The id of what an invocation emits as its entry `number` at a place of its transaction, `serial_place`.

    Ids sort by epoch, then by the `part` of it that commits (`Environment.place`), then by transaction, place in it and
    number: the serial order. No two events have the same.
    """
    return _of_transaction(epoch, part, tid) + "." + place_text(place) + "." + _number(number)


def entry_id(epoch: int, part: int, tid: int, place: bytes, number: int) -> str:
    """The id of the entry `number` of an invocation in its entity's agenda. Ids sort by epoch, then by the `part` of it
    that commits (`Environment.place`), then by transaction, place in it (`styx.model.serial_place`) and number. This is
    the serial order, for places of at most `PLACE_BYTES_MAX`.
    """
    if len(place) > PLACE_BYTES_MAX:
        place = place[:PLACE_BYTES_MAX] + blake2b(place, digest_size=PLACE_DIGEST_BYTES).digest()
    return _of_transaction(epoch, part, tid) + place.hex() + "." + _number(number)


def _of_transaction(epoch: int, part: int, tid: int) -> str:
    told = _last.told
    if told[0] == epoch and told[1] == part and told[2] == tid:
        return told[3]
    begin = f"{epoch:012x}{part:d}{tid:016x}"
    _last.told = (epoch, part, tid, begin)
    return begin


def _number(number: int) -> str:
    return _USUAL_NUMBERS[number] if 0 <= number < len(_USUAL_NUMBERS) else f"{number:08x}"

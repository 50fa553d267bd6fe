"""A page of a listing, put together of what the slots give: one read outside the log of each, all at the end of one
epoch. So a page is one moment of the whole deployment, as any read is.

Each slot is asked for rather more than its share, because a hash spreads the keys, and again when it runs short.
Nothing here sends anything: `ask` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from heapq import heapify, heappop, heapreplace
from typing import Any, Final, NamedTuple

import msgspec

from styx.errors import SnapshotTooOld
from styx.model.entity_list import PART_MAX, Listing
from styx.model.key_range import key_text

PAGE_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of the values of a page: it ends before one that would make it larger, but for its first."""
_PART_MIN: Final = 8
_ATTEMPTS: Final = 4
"""How often a page of any epoch begins, if versions do not last until its end."""

_decode_part = msgspec.msgpack.Decoder(tuple[list[tuple[Any, msgspec.Raw]], bool]).decode

Ask = Callable[[int, tuple[Any, ...], int | None], Awaitable[tuple[Any, int]]]
"""(partition, arguments, the epoch or None) to (result of `LIST_FUNCTION`, the epoch at whose end it has read); raises
what a read raises.
"""


class RawPage(NamedTuple):
    """Entries as (key, the value's msgpack, that of None without values); the key behind which the next page begins, as
    text, None at the end; and the epoch at whose end it was read.
    """

    entries: list[tuple[Any, bytes]]
    after: str | None
    epoch: int


async def list_page(ask: Ask, slots: int, wanted: Listing, at: int | None) -> RawPage:
    """A page of a listing, at the end of the epoch `at`, or with None of the newest one that `ask` gives. `slots`: how
    many partitions stand for all slots that have any.

    Raises `BadArguments`, `SnapshotTooOld`, and what `ask` raises.
    """
    wanted.checked()
    for left in reversed(range(_ATTEMPTS)):
        try:
            return await _page(ask, slots, wanted, at)
        except SnapshotTooOld:
            if at is not None or not left:
                raise
    raise AssertionError("the last attempt ends the loop")


async def _page(ask: Ask, slots: int, wanted: Listing, at: int | None) -> RawPage:
    parts = [_Part(ask, slot, slots, wanted) for slot in range(slots)]
    epochs = await _all([part.fill(at) for part in parts])
    epoch = max(epochs)
    # A page is of one moment: those that have read at an earlier one are asked again.
    await _all([part.fill(epoch) for part, its in zip(parts, epochs, strict=True) if its != epoch])
    heads = [(part.key, slot) for slot, part in enumerate(parts) if part.entries]
    heapify(heads)
    entries: list[tuple[Any, bytes]] = []
    room = PAGE_BYTES_MAX
    while heads:
        part = parts[heads[0][1]]
        key, value = part.entries[part.at]
        room -= len(value)
        if len(entries) == wanted.limit or (entries and room < 0):
            return RawPage(entries, key_text(entries[-1][0]), epoch)
        entries.append((key, value))
        part.at += 1
        if part.is_empty and part.more and len(entries) < wanted.limit:
            await part.fill(epoch)
        if not part.is_empty:
            heapreplace(heads, (part.key, part.slot))
        elif part.more:
            return RawPage(entries, key_text(key), epoch)  # full
        else:
            heappop(heads)
    return RawPage(entries, None, epoch)


class _Part:
    """What one slot has given of a page; `at` is the place of the next entry that the page takes. `more`: the slot has
    more than these.
    """

    def __init__(self, ask: Ask, slot: int, slots: int, wanted: Listing) -> None:
        self.slot = slot
        self.entries: list[tuple[Any, bytes]] = []
        self.at = 0
        self.more = False
        self._ask = ask
        self._wanted = wanted
        share = wanted.limit if slots == 1 else _PART_MIN + wanted.limit * 3 // (2 * slots)
        self._first = min(PART_MAX, share)
        self._room = max(1, PAGE_BYTES_MAX // slots)

    @property
    def is_empty(self) -> bool:
        """Whether the page has taken all of them."""
        return self.at == len(self.entries)

    @property
    def key(self) -> Any:
        """The key of the next entry."""
        return self.entries[self.at][0]

    async def fill(self, epoch: int | None) -> int:
        """Asks the slot for what comes behind those that the page has taken, until its keys are in order; the epoch at
        whose end it has read.
        """
        wanted = self._wanted
        after = key_text(self.entries[self.at - 1][0]) if self.at else wanted.after
        arguments = (wanted.table, wanted.prefix, after, self._first, self._room, wanted.values)
        while True:
            result, its_epoch = await self._ask(self.slot, arguments, epoch)
            if result is not None:
                break
        found, self.more = _decode_part(result)
        self.entries = [(tuple(key) if type(key) is list else key, bytes(value)) for key, value in found]
        self.at = 0
        return its_epoch


async def _all(asked: list[Coroutine[Any, Any, int]]) -> list[int]:
    """Their results; raises what the first raises that fails, and ends the others."""
    tasks = [asyncio.ensure_future(each) for each in asked]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        raise

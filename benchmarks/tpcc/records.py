"""A witness's record of each request. Records are packed in blocks, because there are very many.

A NewOrder of ten lines takes about 100 bytes, a Payment 40. A list of a million such objects would take a gigabyte and
keep the garbage collector busy; blocks of msgpack do neither, and travel between processes as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

import msgspec

from benchmarks.tpcc.answers import OrderStatusAnswer, Wanted
from benchmarks.tpcc.tables import Row

BLOCK: Final = 250
"""Records that are packed at once, which takes less than a millisecond."""

Place = tuple[int, int, int]
"""A transaction's place in the serial order that its reply claims: epoch, phase, TID."""


class Ordered(Row):
    """A NewOrder that committed: what was asked for, and of the answer what later rows must agree with.

    `left` is what each line left of its stock, 0 for what cannot be; `terms` and `goods` are checksums of what no
    transaction writes.
    """

    w_id: int
    d_id: int
    c_id: int
    lines: list[Wanted]
    o_id: int
    entry_d: int
    total: int
    left: list[int]
    terms: int
    goods: int
    place: Place


class Paid(Row):
    """A Payment that committed, at W_ID and D_ID, by the customer that was asked for or that the name was found for.

    `names` is the checksum of what no transaction writes.
    """

    w_id: int
    d_id: int
    c_w_id: int
    c_d_id: int
    c_id: int
    by_name: bool
    amount: int
    date: int
    payment_cnt: int
    balance: int
    names: int
    place: Place


class Delivered(Row):
    """A Delivery that committed: for each district, from the first, the order that it delivered."""

    w_id: int
    carrier_id: int
    o_ids: list[int | None]
    place: Place


class Shown(Row):
    """The result of an OrderStatus in that district."""

    w_id: int
    d_id: int
    by_name: bool
    status: OrderStatusAnswer
    place: Place


class Levelled(Row):
    """The result of a StockLevel in that district."""

    w_id: int
    d_id: int
    threshold: int
    short: int
    place: Place


class AskedOrder(Row):
    """A NewOrder without an answer."""

    w_id: int
    d_id: int
    c_id: int
    lines: list[Wanted]


class AskedPayment(Row):
    """A Payment without an answer. `who` is a customer's number or last name."""

    w_id: int
    d_id: int
    c_w_id: int
    c_d_id: int
    who: int | str
    amount: int


class AskedDelivery(Row):
    """A Delivery without an answer."""

    w_id: int
    carrier_id: int


R = TypeVar("R", bound=Row)
_encode: Final = msgspec.msgpack.Encoder().encode


class Records(Generic[R]):
    """A list of records of one kind that is only ever appended to."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._last: list[R] = []

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK + len(self._last)

    def append(self, record: R) -> None:
        """Keeps the record; it must not be changed any more."""
        self._last.append(record)
        if len(self._last) == BLOCK:
            self._blocks.append(_encode(self._last))
            self._last.clear()

    def blocks(self) -> list[bytes]:
        """All of them, for `unpacked`."""
        return [*self._blocks, _encode(self._last)] if self._last else [*self._blocks]


def unpacked(blocks: Iterable[bytes], kind: type[R]) -> Iterator[R]:
    """The records in these blocks, in the order in which they were appended."""
    decoder = msgspec.msgpack.Decoder(list[kind])  # type: ignore[valid-type]
    for block in blocks:
        yield from decoder.decode(block)

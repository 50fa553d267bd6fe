"""The record of a run: each request with its reply and its times, and what the payment provider has charged.

Client processes write it, and the audit reads it. It is packed in compressed chunks, so that an hour fits in memory,
and is read request by request. It judges nothing.

Times are microseconds of the machine's monotonic clock, which all clients of a run share. Arguments and results are
plain data, as they were sent and as they came; `result_as` and `arguments_as` make them what they are.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from benchmarks.marketplace.answers import Board
from benchmarks.marketplace.services.seller.rows import OrderEntry
from styx.messages import Reply

T = TypeVar("T")

CHUNK: Final = 1_000
"""Requests that are packed together."""
_LEVEL: Final = 1
"""Of compression: a fourth of the size that requests have, for hardly any time."""


class Kind(StrEnum):
    """What a request is for. ADD, ABANDON and CHECKOUT_AGAIN are no transactions of the benchmark, but parts of
    sessions.
    """

    CHECKOUT = "checkout"
    DELIVERY = "delivery"
    DASHBOARD = "dashboard"
    PRICE = "price"
    """A product's price is set."""
    REPLACE = "replace"
    """Another product takes a product's place: the papers' Product Delete."""
    WITHDRAW = "withdraw"
    """A product is taken off the market: `product.delete`."""
    RESTOCK = "restock"
    ADD = "add"
    """A product is put into a cart."""
    ABANDON = "abandon"
    """A cart is sealed: instead of being checked out, or because the session before it broke."""
    CHECKOUT_AGAIN = "checkout-again"
    """The same submission once more, sent together with the first: one of both must say that it is repeated."""


class Ended(StrEnum):
    """How a request ended, as `benchmarks.driver.target.Outcome`."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    """The function raised; it has changed nothing."""
    REJECTED = "rejected"
    """It was not run."""
    UNKNOWN = "unknown"
    """There was no reply: it may have committed, and may still commit."""


class Place(NamedTuple):
    """A transaction's place in the serial order of its deployment."""

    epoch: int
    phase: int
    tid: int


class Asked(Struct, array_like=True, frozen=True, kw_only=True):
    """A request and what became of it. `number` counts the requests of a client process in the order of their sending.

    `session` is the checkout id under which a cart's requests belong together, empty for others. A session that is sent
    again has several checkouts. `error` is the type of what the function raised, or the code of a rejection. `place` is
    None unless a function ran to its end.

    The `result` of a dashboard is a `DashboardSeen`; all others are what the function gave.
    """

    client: int
    number: int
    kind: Kind
    session: str
    key: Any
    function: str
    arguments: list[Any]
    sent_us: int
    ended_us: int
    ended: Ended
    error: str = ""
    result: Any = None
    place: Place | None = None

    @classmethod
    def by(
        cls,
        reply: Reply,
        kind: Kind,
        number: int,
        sent_us: int,
        key: Any,
        function: str,
        *arguments: Any,
        session: str = "",
    ) -> Asked:
        """What one client alone has asked, and has just now been answered."""
        error = reply.error
        return cls(
            client=0,
            number=number,
            kind=kind,
            session=session,
            key=key,
            function=function,
            arguments=msgspec.to_builtins(list(arguments)),
            sent_us=sent_us,
            ended_us=now_us(),
            ended=Ended.COMMITTED if error is None else Ended.ABORTED,
            error="" if error is None else error.type,
            result=msgspec.to_builtins(reply.result),
            place=Place(reply.epoch, reply.phase, reply.tid),
        )

    def result_as(self, kind: type[T]) -> T:
        """The result as a value of `kind`, such as `CheckoutResult`. Raises `msgspec.ValidationError`."""
        return msgspec.convert(self.result, kind)

    def argument_as(self, index: int, kind: type[T]) -> T:
        """An argument as a value of `kind`, such as `CartItem`. Raises `msgspec.ValidationError`."""
        return msgspec.convert(self.arguments[index], kind)


def now_us() -> int:
    """The time that records are in."""
    return time.monotonic_ns() // 1_000


class DashboardSeen(Struct, array_like=True, frozen=True):
    """A dashboard as its client saw it: the board, and the sums that the client itself has made of the entries.

    `entries` are kept of some dashboards only, and None of the others.
    """

    board: Board
    summed: Board
    complete: bool
    entries: list[OrderEntry] | None = None


class Charge(Struct, frozen=True, kw_only=True):
    """What the provider has decided about an invoice number, once and for all.

    `asked` counts the questions with this number that it has answered, `refused` those on which it turned its back
    since it was to be unreachable, `differing` those that named another customer, sum or type than the first one.
    """

    invoice_number: str
    customer_id: int
    cents: int
    payment_type: str
    approved: bool
    at: datetime
    asked: int
    refused: int = 0
    differing: int = 0


class MarkSeen(Struct, array_like=True, frozen=True):
    """When a client saw the mark that a checkout has ended, and how: SUCCESS, ABORT or NOT_ACCEPTED."""

    session: str
    status: str
    seen_us: int


class Mirrored(Struct, array_like=True, frozen=True):
    """A product as its seller's client believes it to be at the end: the last change that was acknowledged. `certain`
    is False if a change without a reply may have come after it.
    """

    seller_id: int
    product_id: int
    price: int
    version: str
    active: bool
    certain: bool = True


class Record:
    """All requests of a run, or of several, each client's in the order in which they ended; with the marks that were
    seen, and the products that were changed, as the clients believe them to be.

    Iterating decodes it again each time; `len` costs nothing.
    """

    def __init__(
        self, chunks: Iterable[bytes] = (), marks: Iterable[MarkSeen] = (), mirror: Iterable[Mirrored] = ()
    ) -> None:
        self.marks = list(marks)
        self.mirror = list(mirror)
        self._chunks = list(chunks)

    @classmethod
    def of(cls, asked: Iterable[Asked], marks: Iterable[MarkSeen] = (), mirror: Iterable[Mirrored] = ()) -> Record:
        """The record of these requests."""
        rest = iter(asked)
        return cls(map(pack, iter(lambda: list(islice(rest, CHUNK)), [])), marks, mirror)

    def __len__(self) -> int:
        return sum(int.from_bytes(chunk[:_COUNT_BYTES]) for chunk in self._chunks)

    def __iter__(self) -> Iterator[Asked]:
        for chunk in self._chunks:
            yield from unpack(chunk)


_COUNT_BYTES: Final = 4
_encode = msgspec.msgpack.Encoder().encode
_decode: Final[msgspec.msgpack.Decoder[list[Asked]]] = msgspec.msgpack.Decoder(list[Asked])


def pack(asked: Sequence[Asked]) -> bytes:
    """A chunk of these requests."""
    return len(asked).to_bytes(_COUNT_BYTES) + zlib.compress(_encode(asked), _LEVEL)


def unpack(chunk: bytes) -> list[Asked]:
    """The requests of a chunk."""
    return _decode.decode(zlib.decompress(chunk[_COUNT_BYTES:]))

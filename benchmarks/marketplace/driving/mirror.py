"""The mirror: what each product is, as far as its sellers know. It follows acknowledged commits only.

Whoever fills a cart sees the latest acknowledged version and price, or, while a change is under way, the one before.
Changes of one product are sent one after the other. A change without a reply is not taken over; if it has happened, the
next price update for the product is answered with what the product is, and the mirror takes that.

Several client processes keep one mirror together, in a file that all of them map. Each one changes products of its own
alone, so a seller's products are divided among them and its popularity stays what it is.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import goods
from benchmarks.marketplace.record import Mirrored

PRICE_MAX: Final = 1_000_00
"""In cents. A product that would cost more gets a price as new ones have: prices that only rise would have no end."""
_PRICE_BITS: Final = 24
_PRICE_MASK: Final = (1 << _PRICE_BITS) - 1
_WITHDRAWN: Final = 1 << _PRICE_BITS
_VERSION_AT: Final = _PRICE_BITS + 1
_BYTES: Final = 8


class Known(NamedTuple):
    """What is known of a product."""

    price: int
    version: str
    active: bool


class Mirror:
    """That of client `client` of `clients`. Products go by their numbers (`benchmarks.marketplace.population.goods`).

    An entry is one 64-bit number, so that other processes see it whole: the version's number, whether the product is
    withdrawn, and its price. 0 is a product that nobody has changed.
    """

    def __init__(self, settings: Settings, client: int, clients: int) -> None:
        self._run = settings.run
        self._client = client
        self._clients = clients
        self._settings = settings
        self._prices = goods.prices(settings)
        self._entries = _entries(settings)
        self._busy: set[int] = set()
        self._changed: set[int] = set()
        self._uncertain: set[int] = set()
        self._versions = 0

    def known(self, number: int) -> Known:
        """What a customer sees of it."""
        entry = self._entries[number]
        return Known(
            entry & _PRICE_MASK or self._prices[number], self._text(entry >> _VERSION_AT), not entry & _WITHDRAWN
        )

    def take(self, number: int) -> bool:
        """Whether this client may change the product now; then nobody else may until `end`."""
        if number % self._clients != self._client or number in self._busy:
            return False
        self._busy.add(number)
        return True

    def end(self, number: int) -> None:
        """The change is answered, or never will be."""
        self._busy.discard(number)

    def new_version(self) -> str:
        """A version that no product of this run has had."""
        self._versions += 1
        return self._text(self._versions * self._clients + self._client)

    def follow(self, number: int, price: int, version: str, *, active: bool = True) -> None:
        """The product is this now."""
        self._changed.add(number)
        known = self._number(version)
        if known is None:
            # Of an earlier run, whose change came late. What is here stays, and carts of it are refused until the
            # product is replaced.
            self._uncertain.add(number)
            return
        self._uncertain.discard(number)
        self._entries[number] = known << _VERSION_AT | (0 if active else _WITHDRAWN) | price

    def doubt(self, number: int) -> None:
        """A change may have happened, or may yet happen."""
        self._changed.add(number)
        self._uncertain.add(number)

    def changed(self) -> Iterator[Mirrored]:
        """The products that this client has changed, or may have."""
        for number in sorted(self._changed):
            known = self.known(number)
            certain = number not in self._uncertain and number not in self._busy
            yield Mirrored(*goods.key_of(self._settings, number), known.price, known.version, known.active, certain)

    def _text(self, number: int) -> str:
        return f"{self._run}-{number}" if number else goods.FIRST_VERSION

    def _number(self, version: str) -> int | None:
        if version == goods.FIRST_VERSION:
            return 0
        run, _, number = version.rpartition("-")
        return int(number) if run == self._run and number.isdecimal() else None


def new_mirror_file(products: int) -> Path:
    """A file for a mirror of several clients, in which nothing has changed yet."""
    handle, name = tempfile.mkstemp(prefix="styx-marketplace-mirror-")
    with os.fdopen(handle, "wb") as file:
        file.truncate(products * _BYTES)
    return Path(name)


def _entries(settings: Settings) -> array[int] | memoryview[int]:
    if not settings.mirror_file:
        return array("q", bytes(_BYTES * settings.products))
    with Path(settings.mirror_file).open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), settings.products * _BYTES)
    return memoryview(mapped).cast("q")

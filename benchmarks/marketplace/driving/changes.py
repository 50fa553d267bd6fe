"""What sellers do: they set prices, replace products, withdraw them, bring pieces. One change of a product at a time,
so that each one names the version and the price that the one before it has left.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from benchmarks.driver.workload import NobodyIsFree
from benchmarks.marketplace.driving.mirror import PRICE_MAX, Mirror
from benchmarks.marketplace.driving.sessions import Popularity
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import goods
from benchmarks.marketplace.record import Kind
from benchmarks.marketplace.services.product.rows import Product
from styx.messages import Reply

DRAWS_MAX: Final = 200
"""Draws of a product that may be changed now, before nobody counts as free."""
RISES: Final = (1, 10)
"""In percent, of a price; uniform."""
PIECES: Final = (1, 1_000)
"""What is brought at once."""
_PRICE: Final = Product.__struct_fields__.index("price")
_VERSION: Final = Product.__struct_fields__.index("version")


class Changes:
    """Of one client process. `next_…` gives a product's number with the arguments of its function."""

    def __init__(self, settings: Settings, mirror: Mirror, popularity: Popularity, rng: random.Random) -> None:
        self._settings = settings
        self._mirror = mirror
        self._popularity = popularity
        self._rng = rng

    def next_price(self) -> tuple[int, tuple[Any, ...]]:
        """A price that is higher by some percent, rounded up to a cent."""
        number = self._taken(lambda number: self._mirror.known(number).active)
        known = self._mirror.known(number)
        price = -(-known.price * (100 + self._rng.randint(*RISES)) // 100)
        return number, (price if price <= PRICE_MAX else self._rng.randint(*goods.PRICES), known.version)

    def next_replace(self) -> tuple[int, tuple[Any, ...]]:
        """Another product in the place of one, withdrawn or not."""
        number, version = self._taken(lambda _: True), self._mirror.new_version()
        return number, (goods.offer_of(self._settings, number, self._rng.randint(*goods.PRICES), version), version)

    def next_withdrawal(self) -> tuple[int, tuple[Any, ...]]:
        """A product that is no longer offered."""
        return self._taken(lambda number: self._mirror.known(number).active), ()

    def next_restock(self) -> tuple[int, tuple[Any, ...]]:
        """More pieces of any product. Nobody else waits for it."""
        return self._popularity.product(), (self._rng.randint(*PIECES),)

    def answered(self, kind: str, number: int, reply: Reply) -> None:
        """The mirror takes what has committed, and what an answer says of the product."""
        mirror, result = self._mirror, reply.result
        if reply.error is not None:
            if reply.error.type == "UnknownProduct":
                # It was withdrawn by a request whose reply never came.
                known = mirror.known(number)
                mirror.follow(number, known.price, known.version, active=False)
        elif kind == Kind.PRICE:
            mirror.follow(number, result["price"], result["version"])
        elif kind == Kind.REPLACE:
            mirror.follow(number, result[_PRICE], result[_VERSION])
        elif kind == Kind.WITHDRAW:
            known = mirror.known(number)
            mirror.follow(number, known.price, known.version, active=False)
        mirror.end(number)

    def unknown(self, number: int) -> None:
        """No reply came."""
        self._mirror.doubt(number)
        self._mirror.end(number)

    def _taken(self, good: Callable[[int], bool]) -> int:
        """A product that is taken for a change. Raises `NobodyIsFree` if there is hardly one."""
        for _ in range(DRAWS_MAX):
            number = self._popularity.product()
            if good(number) and self._mirror.take(number):
                return number
        raise NobodyIsFree

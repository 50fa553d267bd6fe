"""Products, their stock and their copies. A product's number counts from 0 over all sellers: the first seller has the
first ones.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import words
from benchmarks.marketplace.services.cart.replica import Replica
from benchmarks.marketplace.services.product.rows import Offer, Product
from benchmarks.marketplace.services.stock.rows import StockItem

FIRST_VERSION: Final = "v0"
PRICES: Final = (1_00, 99_99)
"""In cents, of new products; uniform."""
FREIGHTS: Final = (0, 9_99)
YTDS: Final = (10, 99)
BEGINNING: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When all of it was made."""

Key = tuple[int, int]


def key_of(settings: Settings, number: int) -> Key:
    """(seller, product) of a product's number."""
    seller, product = divmod(number, settings.products_per_seller)
    return seller + 1, product + 1


def number_of(settings: Settings, key: Key) -> int:
    """The number of (seller, product)."""
    return (key[0] - 1) * settings.products_per_seller + key[1] - 1


@lru_cache(maxsize=4)
def prices(settings: Settings) -> array[int]:
    """The first price of each product, by its number."""
    rng = random.Random(f"{settings.data_seed} prices")
    return array("q", [rng.randint(*PRICES) for _ in range(settings.products)])


@lru_cache(maxsize=4)
def freights(settings: Settings) -> array[int]:
    """The freight of each product, by its number; what replaces a product has its freight."""
    rng = random.Random(f"{settings.data_seed} freights")
    return array("q", [rng.randint(*FREIGHTS) for _ in range(settings.products)])


def name_of(number: int) -> str:
    """A product's name; what replaces a product is called the same."""
    material, good = divmod(number, len(words.GOODS))
    return f"{words.MATERIALS[material % len(words.MATERIALS)]} {words.GOODS[good]} {number}"


def offer_of(settings: Settings, number: int, price: int, version: str) -> Offer:
    """What the seller says of a product."""
    rng = random.Random(f"{settings.data_seed} offer {number} {version}")
    sku = "".join(rng.choices(words.ALPHANUMERIC, k=16))
    category = words.CATEGORIES[number % len(words.CATEGORIES)]
    name = name_of(number)
    return Offer(name, sku, category, f"A {name}, as good as new", price, freights(settings)[number])


def products(settings: Settings) -> Iterator[tuple[Key, Product]]:
    """All of them."""
    for number, price in enumerate(prices(settings)):
        offer = offer_of(settings, number, price, FIRST_VERSION)
        yield (
            key_of(settings, number),
            Product(
                offer.name,
                offer.sku,
                offer.category,
                offer.description,
                price,
                offer.freight_value,
                offer.status,
                FIRST_VERSION,
                True,
                BEGINNING,
                BEGINNING,
            ),
        )


def replicas(settings: Settings) -> Iterator[tuple[Key, Replica]]:
    """The carts' copies of all products."""
    for number, price in enumerate(prices(settings)):
        yield key_of(settings, number), Replica(price, FIRST_VERSION, True, 0)


def stock(settings: Settings) -> Iterator[tuple[Key, StockItem]]:
    """The stock of all products, as the orders that are there have left it."""
    rng = random.Random(f"{settings.data_seed} stock")
    for number in range(settings.products):
        key = key_of(settings, number)
        ytd = rng.randint(*YTDS)
        yield key, StockItem(*key, settings.pieces, 0, 0, ytd, "", FIRST_VERSION, True, BEGINNING, BEGINNING)

"""What clients do to bring a broken rule out: by chance, or one after the other."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from tests.benchmarks.marketplace.audit.workload import Shop
from tests.benchmarks.marketplace.shop import CUSTOMERS, request


async def mix(shop: Shop) -> None:
    await shop.mix(5)


async def prices_race(shop: Shop) -> None:
    """Prices of one seller's two products change while carts hold both, and while copies lag behind."""
    for number in range(8):
        for key in ((1, 1), (1, 2)):
            await shop.add(1, key, 1, session=f"race{number}")
        for key in ((1, 1), (1, 2)):
            await shop.set_price(key, 20_00 + number * 100 + key[1], "v0")
        await shop.cluster.advance(timedelta(seconds=2))
        await shop.checkout(request(1, checkout_id=f"race{number}"))
    await shop.cluster.advance(timedelta(minutes=2))


async def replaced(shop: Shop) -> None:
    """A product is replaced while a cart holds it, and the new one is bought at once."""
    await shop.add(1, (1, 1), 1, session="old")
    await shop.replace((1, 1))
    await shop.checkout(request(1, checkout_id="old"))
    await shop.buy(2, ((1, 1), 1))
    await shop.set_price((1, 1), 7_77, "v0")
    await shop.cluster.advance(timedelta(minutes=1))


async def the_last_pieces(shop: Shop) -> None:
    """Two customers buy all that there is, one after the other; neither pays."""
    await shop.buy(1, ((1, 1), 3))
    await shop.buy(2, ((1, 1), 3))
    await shop.cluster.advance(timedelta(minutes=1))


async def at_once(shop: Shop) -> None:
    """All customers check out the same product at once."""
    for number in range(3):
        for customer_id in CUSTOMERS:
            await shop.add(customer_id, (1, 1), 1, session=f"{customer_id}-{number}")
        sent = [request(customer_id, checkout_id=f"{customer_id}-{number}") for customer_id in CUSTOMERS]
        await asyncio.gather(*map(shop.checkout, sent))
        await shop.cluster.advance(timedelta(0))


async def retries(shop: Shop) -> None:
    """A refused checkout, and another one in time."""
    await shop.buy(1, ((1, 1), 999))
    await shop.cluster.advance(timedelta(minutes=2))
    await shop.buy(1, ((1, 1), 1))
    await shop.cluster.advance(timedelta(minutes=15))


async def two_payments_at_once(shop: Shop) -> None:
    """Payments of one customer that overlap."""
    for number in range(6):
        await shop.add(1, (1, 1), 1, session=f"two{number}")
        await shop.checkout(request(1, checkout_id=f"two{number}"))
    await shop.cluster.advance(timedelta(minutes=1))


async def deliveries(shop: Shop) -> None:
    """Orders of all sellers by all customers, and deliveries that cannot serve them at once."""
    for customer_id in CUSTOMERS:
        await shop.buy(customer_id, *((key, 1) for key in shop.products[customer_id:]))
        await shop.cluster.advance(timedelta(seconds=1))
    for _ in range(6):
        await shop.delivery()

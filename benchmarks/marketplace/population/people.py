"""Customers and sellers."""

from __future__ import annotations

import random
from collections.abc import Iterator

from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import words
from benchmarks.marketplace.services.customer.rows import Customer
from benchmarks.marketplace.services.seller.rows import Seller

OWN_CARD = 0.7
"""The share of customers whose card is their own."""


def customer(settings: Settings, customer_id: int) -> Customer:
    """A customer, always the same."""
    rng = random.Random(f"{settings.data_seed} customer {customer_id}")
    first, last = rng.choice(words.FIRST_NAMES), rng.choice(words.LAST_NAMES)
    holder = f"{first} {last}" if rng.random() < OWN_CARD else f"{rng.choice(words.FIRST_NAMES)} {last}"
    city, state = rng.choice(words.CITIES)
    return Customer(
        first_name=first,
        last_name=last,
        address=f"{rng.randint(1, 400)} {rng.choice(words.STREETS)}",
        complement=rng.choice(words.COMPLEMENTS),
        birth_date=f"{rng.randint(1940, 2007)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        zip_code=words.digits(rng, 5),
        city=city,
        state=state,
        card_number=words.digits(rng, 16),
        card_security_number=words.digits(rng, 3),
        card_expiration=f"{rng.randint(1, 12):02}{rng.randint(27, 32)}",
        card_holder_name=holder,
        card_type=rng.choice(words.BRANDS),
    )


def customers(settings: Settings) -> Iterator[tuple[int, Customer]]:
    """All of them."""
    return ((number, customer(settings, number)) for number in range(1, settings.customers + 1))


def sellers(settings: Settings) -> Iterator[tuple[int, Seller]]:
    """All of them."""
    for number in range(1, settings.sellers + 1):
        rng = random.Random(f"{settings.data_seed} seller {number}")
        last = rng.choice(words.LAST_NAMES)
        city, state = rng.choice(words.CITIES)
        yield (
            number,
            Seller(
                name=f"{rng.choice(words.FIRST_NAMES)} {last}",
                company_name=f"{last} {rng.choice(words.COMPANIES)}",
                email=f"seller{number}@example.com",
                phone=words.digits(rng, 10),
                mobile_phone=words.digits(rng, 11),
                cpf=words.digits(rng, 11),
                cnpj=words.digits(rng, 14),
                address=f"{rng.randint(1, 400)} {rng.choice(words.STREETS)}",
                complement=rng.choice(words.COMPLEMENTS),
                city=city,
                state=state,
                zip_code=words.digits(rng, 5),
            ),
        )

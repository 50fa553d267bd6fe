"""The initial rows of CUSTOMER and HISTORY."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from benchmarks.driver.share import Share
from benchmarks.tpcc.nurand import names_loaded
from benchmarks.tpcc.population.places import address
from benchmarks.tpcc.settings import FIRST_PAYMENT, Settings
from benchmarks.tpcc.streams import stream
from benchmarks.tpcc.tables import Customer, History
from benchmarks.tpcc.text import a_strings, last_name, n_strings

POPULATED: Final = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
"""The time that all initial rows have, in microseconds: the standard's is the clock's, but the same seed makes the same
rows."""
BAD_CREDIT: Final = 0.1
"""The share of customers with credit BC."""
CREDIT_LIMIT: Final = 50_000_00
DISCOUNT_MAX: Final = 50_00
"""In ten-thousandths: 50 %."""


def customers(settings: Settings, w_id: int, d_id: int) -> Iterator[Customer]:
    """A district's customers, from the first."""
    rng = stream(settings.data_seed, "customer", w_id, d_id)
    uniform, text, numbers = rng.random, a_strings(rng), n_strings(rng)
    names = customer_names(settings, w_id, d_id)
    bad_credits = Share(BAD_CREDIT, rng).next_block(settings.customers)
    for (last, first), bad_credit in zip(names, bad_credits, strict=True):
        yield Customer(
            first_name=first,
            middle="OE",
            last_name=last,
            address=address(text, numbers),
            phone=numbers.take(16),
            since=POPULATED,
            credit="BC" if bad_credit else "GC",
            credit_lim=CREDIT_LIMIT,
            discount=int(uniform() * (DISCOUNT_MAX + 1)),
            balance=-FIRST_PAYMENT,
            ytd_payment=FIRST_PAYMENT,
            payment_cnt=1,
            delivery_cnt=0,
            data=text.between(300, 500),
        )


def histories(settings: Settings, w_id: int, d_id: int) -> Iterator[History]:
    """The first payment of each of a district's customers, from the first."""
    text = a_strings(stream(settings.data_seed, "history", w_id, d_id))
    for _ in range(settings.customers):
        yield History(w_id=w_id, d_id=d_id, date=POPULATED, amount=FIRST_PAYMENT, data=text.between(12, 24))


def customers_by_name(settings: Settings, w_id: int, d_id: int) -> dict[str, list[int]]:
    """The numbers of a district's customers of each last name, in the order of their first names."""
    found: dict[str, list[int]] = {}
    numbered = enumerate(customer_names(settings, w_id, d_id), start=1)
    for (last, _first), c_id in sorted((name, c_id) for c_id, name in numbered):
        found.setdefault(last, []).append(c_id)
    return found


def customer_names(settings: Settings, w_id: int, d_id: int) -> Iterator[tuple[str, str]]:
    """The last and first names of a district's customers: every last name once, then as they are drawn."""
    rng = stream(settings.data_seed, "customer name", w_id, d_id)
    text, drawn, in_order = a_strings(rng), names_loaded(settings, rng), settings.last_names
    for number in range(settings.customers):
        yield last_name(number if number < in_order else drawn()), text.between(8, 16)

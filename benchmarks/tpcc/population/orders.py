"""The initial rows of ORDER, ORDER-LINE and NEW-ORDER.

Every customer has one order, and the orders are in a random order. The last 30 % are not delivered: they have no
carrier, their lines no date of delivery but an amount.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.tpcc.population.goods import DIST_INFO
from benchmarks.tpcc.population.people import POPULATED
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.streams import stream
from benchmarks.tpcc.tables import Order, OrderLine
from benchmarks.tpcc.text import a_strings

LINES_MIN: Final = 5
LINES_MAX: Final = 15
"""The most lines of an order."""
QUANTITY: Final = 5
"""The quantity of each line."""
AMOUNT_MAX: Final = 9_999_99
"""In cents, of a line that is not delivered."""
CARRIERS: Final = 10
"""Numbered from 1."""


def orders(settings: Settings, w_id: int, d_id: int) -> Iterator[Order]:
    """A district's orders, from the first."""
    rng = stream(settings.data_seed, "order", w_id, d_id)
    counts = line_counts(settings, w_id, d_id)
    for number, (c_id, count) in enumerate(zip(ordering_customers(settings, w_id, d_id), counts, strict=True)):
        yield Order(
            c_id=c_id,
            entry_d=POPULATED,
            carrier_id=rng.randint(1, CARRIERS) if number < settings.delivered else None,
            ol_cnt=count,
            all_local=1,
        )


def order_lines(settings: Settings, w_id: int, d_id: int) -> Iterator[list[OrderLine]]:
    """The lines of each of a district's orders, from the first."""
    rng = stream(settings.data_seed, "order line", w_id, d_id)
    uniform, text, items = rng.random, a_strings(rng), settings.items
    for number, count in enumerate(line_counts(settings, w_id, d_id)):
        delivered = number < settings.delivered
        yield [
            OrderLine(
                i_id=1 + int(uniform() * items),
                supply_w_id=w_id,
                delivery_d=POPULATED if delivered else None,
                quantity=QUANTITY,
                amount=0 if delivered else 1 + int(uniform() * AMOUNT_MAX),
                dist_info=text.take(DIST_INFO),
            )
            for _ in range(count)
        ]


def line_counts(settings: Settings, w_id: int, d_id: int) -> list[int]:
    """How many lines each of a district's orders has."""
    rng = stream(settings.data_seed, "line count", w_id, d_id)
    return rng.choices(range(LINES_MIN, LINES_MAX + 1), k=settings.orders)


def undelivered_orders(settings: Settings) -> range:
    """The numbers of a district's orders that are not delivered: those that have a row of NEW-ORDER."""
    return range(settings.delivered + 1, settings.orders + 1)


def ordering_customers(settings: Settings, w_id: int, d_id: int) -> list[int]:
    """The customers of a district's orders: each once."""
    rng = stream(settings.data_seed, "ordering customer", w_id, d_id)
    return rng.sample(range(1, settings.customers + 1), settings.orders)

"""NURand, the standard's non-uniform distribution of customers, last names and items (clause 2.1.6), and its constants.

Where there are fewer customers, names or items than in the standard, A shrinks with them, so that about the same share
of the requests is for the same share of the rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from benchmarks.tpcc.settings import CUSTOMERS, ITEMS, LAST_NAMES, Settings
from benchmarks.tpcc.streams import stream

A_LAST_NAME: Final = 255
A_CUSTOMER: Final = 1_023
A_ITEM: Final = 8_191

LAST_NAME_DELTAS: Final = tuple(delta for delta in range(65, 120) if delta not in (96, 112))
"""By how much C for last names in requests and in the data set differ (clause 2.1.6.1)."""


class Constants(NamedTuple):
    """C of each distribution: of the last names in the data set and in requests, of customers, of items."""

    loaded_name: int
    name: int
    customer: int
    item: int


def constants(settings: Settings) -> Constants:
    """The same for all of a run and its data set, by their seed."""
    rng = stream(settings.data_seed, "constants")
    a_name = a_of(A_LAST_NAME, settings.last_names, LAST_NAMES)
    delta = rng.choice(LAST_NAME_DELTAS) * (a_name + 1) // (A_LAST_NAME + 1)
    loaded_name = rng.randint(0, a_name - delta)
    return Constants(
        loaded_name,
        loaded_name + delta,
        rng.randint(0, a_of(A_CUSTOMER, settings.customers, CUSTOMERS)),
        rng.randint(0, a_of(A_ITEM, settings.items, ITEMS)),
    )


def a_of(standard_a: int, size: int, standard_size: int) -> int:
    """A for a range of `size` values: the largest 2^k - 1 that is no larger a share of it than the standard's is."""
    values = max(1, (standard_a + 1) * size // standard_size)
    return (1 << values.bit_length() - 1) - 1


def nurand(a: int, low: int, high: int, c: int, rng: random.Random) -> Callable[[], int]:
    """A function that draws NURand(a, low, high) with the constant `c`."""
    uniform, a_values, span = rng.random, a + 1, high - low + 1

    def draw() -> int:
        return ((int(uniform() * a_values) | (low + int(uniform() * span))) + c) % span + low

    return draw


def names_loaded(settings: Settings, rng: random.Random) -> Callable[[], int]:
    """Numbers of last names as the data set has them."""
    return _names(settings, constants(settings).loaded_name, rng)


def names_asked_for(settings: Settings, rng: random.Random) -> Callable[[], int]:
    """Numbers of last names as requests have them."""
    return _names(settings, constants(settings).name, rng)


def customers_asked_for(settings: Settings, rng: random.Random) -> Callable[[], int]:
    """Numbers of customers of a district."""
    customers = settings.customers
    return nurand(a_of(A_CUSTOMER, customers, CUSTOMERS), 1, customers, constants(settings).customer, rng)


def items_asked_for(settings: Settings, rng: random.Random) -> Callable[[], int]:
    """Numbers of items."""
    items = settings.items
    return nurand(a_of(A_ITEM, items, ITEMS), 1, items, constants(settings).item, rng)


def _names(settings: Settings, c: int, rng: random.Random) -> Callable[[], int]:
    names = settings.last_names
    return nurand(a_of(A_LAST_NAME, names, LAST_NAMES), 0, names - 1, c, rng)

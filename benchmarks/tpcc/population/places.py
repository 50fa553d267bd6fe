"""The initial rows of WAREHOUSE and DISTRICT."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.streams import stream
from benchmarks.tpcc.tables import DISTRICTS, Address, District, Warehouse
from benchmarks.tpcc.text import Text, a_strings, n_strings, zip_code

TAX_MAX: Final = 20_00
"""In ten-thousandths: 20 %."""


def warehouse_row(settings: Settings, w_id: int) -> Warehouse:
    """A warehouse."""
    rng = stream(settings.data_seed, "warehouse", w_id)
    text, numbers = a_strings(rng), n_strings(rng)
    return Warehouse(
        name=text.between(6, 10), address=address(text, numbers), tax=_tax(rng), ytd=settings.warehouse_ytd
    )


def districts(settings: Settings, w_id: int) -> Iterator[District]:
    """A warehouse's districts, from the first."""
    rng = stream(settings.data_seed, "district", w_id)
    text, numbers = a_strings(rng), n_strings(rng)
    for _ in range(DISTRICTS):
        yield District(
            name=text.between(6, 10),
            address=address(text, numbers),
            tax=_tax(rng),
            ytd=settings.district_ytd,
            next_o_id=settings.orders + 1,
        )


def address(text: Text, numbers: Text) -> Address:
    """A random one."""
    return Address(
        street_1=text.between(10, 20),
        street_2=text.between(10, 20),
        city=text.between(10, 20),
        state=text.take(2),
        zip=zip_code(numbers),
    )


def _tax(rng: random.Random) -> int:
    return rng.randint(0, TAX_MAX)

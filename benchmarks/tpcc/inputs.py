"""The random inputs of the five transactions (clauses 2.4.1 to 2.8.1).

Shares, such as that of rolled-back orders, are exact instead of probabilities. Money is in cents.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

from benchmarks.driver.share import Share
from benchmarks.driver.workload import Planned
from benchmarks.tpcc import tables
from benchmarks.tpcc.answers import Wanted
from benchmarks.tpcc.mixes import DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL
from benchmarks.tpcc.nurand import customers_asked_for, items_asked_for, names_asked_for
from benchmarks.tpcc.population.orders import CARRIERS, LINES_MAX, LINES_MIN
from benchmarks.tpcc.settings import LOCAL, Settings
from benchmarks.tpcc.tables import DISTRICTS
from benchmarks.tpcc.text import last_name

QUANTITY_MAX: Final = 10
"""The largest quantity of a line; the least is 1."""
PAYMENT_MIN: Final = 1_00
PAYMENT_MAX: Final = 5_000_00
THRESHOLD_MIN: Final = 10
THRESHOLD_MAX: Final = 20
"""The largest threshold of a StockLevel."""


def function(name: str, at_home: bool, settings: Settings) -> str:
    """The function that a terminal calls: the local one if all rows are of its own warehouse."""
    return f"local_{name}" if at_home and settings.at_home == LOCAL else name


class Inputs(Protocol):
    """The requests for one of the transactions."""

    def next_block(self, count: int) -> list[Planned]:
        """The next `count`."""


class Places:
    """Draws warehouses, districts and customers, of `settings`."""

    def __init__(self, settings: Settings, rng: random.Random) -> None:
        self._warehouses = settings.warehouses
        self._uniform = rng.random
        self._name = names_asked_for(settings, rng)
        self.customer: Callable[[], int] = customers_asked_for(settings, rng)

    def up_to(self, most: int) -> int:
        """Uniform from 1."""
        return 1 + int(self._uniform() * most)

    def between(self, low: int, high: int) -> int:
        """Uniform."""
        return low + int(self._uniform() * (high - low + 1))

    def warehouse(self) -> int:
        """A terminal's: any."""
        return self.up_to(self._warehouses)

    def other_warehouse(self, home: int) -> int:
        """Any but `home`."""
        drawn = self.up_to(self._warehouses - 1)
        return drawn if drawn < home else drawn + 1

    def district(self) -> int:
        """A district of a warehouse."""
        return self.up_to(DISTRICTS)

    def who(self, by_name: bool) -> int | str:
        """A customer of a district, by a last name or by number."""
        return last_name(self._name()) if by_name else self.customer()


class NewOrders:
    """Clause 2.4.1."""

    def __init__(self, settings: Settings, rng: random.Random) -> None:
        self._settings = settings
        self._places = Places(settings, rng)
        self._item = items_asked_for(settings, rng)
        self._unused_item = settings.items + 1
        self._rollbacks = Share(settings.rollback, rng)
        self._remote_lines = Share(settings.remote_item if settings.warehouses > 1 else 0, rng)

    def next_block(self, count: int) -> list[Planned]:
        """See `Inputs.next_block`."""
        places = self._places
        line_counts = [places.between(LINES_MIN, LINES_MAX) for _ in range(count)]
        remote = iter(self._remote_lines.next_block(sum(line_counts)))
        block = []
        for rollback, line_count in zip(self._rollbacks.next_block(count), line_counts, strict=True):
            home = places.warehouse()
            lines = self._lines(home, list(islice(remote, line_count)))
            if rollback:
                lines[-1].i_id = self._unused_item
            key = home, places.district()
            name = function("new_order", all(line.supply_w_id == home for line in lines), self._settings)
            block.append(Planned(NEW_ORDER, tables.district, key, name, (places.customer(), lines)))
        return block

    def _lines(self, home: int, remote: list[bool]) -> list[Wanted]:
        item, places = self._item, self._places
        return [
            Wanted(item(), places.other_warehouse(home) if away else home, places.up_to(QUANTITY_MAX))
            for away in remote
        ]


class Payments:
    """Clause 2.5.1."""

    def __init__(self, settings: Settings, rng: random.Random) -> None:
        self._settings = settings
        self._places = Places(settings, rng)
        self._by_name = Share(settings.by_name, rng)
        self._remote = Share(settings.remote_customer if settings.warehouses > 1 else 0, rng)

    def next_block(self, count: int) -> list[Planned]:
        """See `Inputs.next_block`."""
        places = self._places
        block = []
        for by_name, away in zip(self._by_name.next_block(count), self._remote.next_block(count), strict=True):
            w_id, d_id = places.warehouse(), places.district()
            c_w_id, c_d_id = (places.other_warehouse(w_id), places.district()) if away else (w_id, d_id)
            amount = places.between(PAYMENT_MIN, PAYMENT_MAX)
            arguments = d_id, c_w_id, c_d_id, places.who(by_name), amount
            name = function("payment", c_w_id == w_id, self._settings)
            block.append(Planned(PAYMENT, tables.warehouse, w_id, name, arguments))
        return block


class OrderStatuses:
    """Clause 2.6.1."""

    def __init__(self, settings: Settings, rng: random.Random) -> None:
        self._places = Places(settings, rng)
        self._by_name = Share(settings.by_name, rng)

    def next_block(self, count: int) -> list[Planned]:
        """See `Inputs.next_block`."""
        places = self._places
        block = []
        for by_name in self._by_name.next_block(count):
            key = places.warehouse(), places.district()
            arguments = (places.who(by_name),)
            block.append(Planned(ORDER_STATUS, tables.district, key, "order_status", arguments))
        return block


class Deliveries:
    """Clause 2.7.1."""

    def __init__(self, settings: Settings, rng: random.Random) -> None:
        self._function = function("delivery", True, settings)
        self._places = Places(settings, rng)

    def next_block(self, count: int) -> list[Planned]:
        """See `Inputs.next_block`."""
        places = self._places
        return [
            Planned(DELIVERY, tables.warehouse, places.warehouse(), self._function, (places.up_to(CARRIERS),))
            for _ in range(count)
        ]


class StockLevels:
    """Clause 2.8.1."""

    def __init__(self, settings: Settings, rng: random.Random) -> None:
        self._places = Places(settings, rng)

    def next_block(self, count: int) -> list[Planned]:
        """See `Inputs.next_block`."""
        places = self._places
        block = []
        for _ in range(count):
            key = places.warehouse(), places.district()
            threshold = places.between(THRESHOLD_MIN, THRESHOLD_MAX)
            block.append(Planned(STOCK_LEVEL, tables.district, key, "stock_level", (threshold,)))
        return block

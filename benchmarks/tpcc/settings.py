"""What a TPC-C workload is made with: the values, their defaults, and what is refused. Never draws or sends.

The standard's cardinalities of a warehouse are the largest. A smaller warehouse has fewer items or fewer customers, and
what the standard counts by them shrinks alike: stock, last names, orders, those undelivered, and the initial
year-to-date amounts, so that every consistency condition holds at every scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.tpcc.mixes import MIXES, STANDARD
from benchmarks.tpcc.tables import DISTRICTS
from styx.errors import ConfigurationError

ITEMS: Final = 100_000
"""In the standard's catalogue, and so the rows of stock of a warehouse."""
CUSTOMERS: Final = 3_000
"""Of a district, in the standard; also its initial orders."""
LAST_NAMES: Final = 1_000
"""Of a district's customers, in the standard."""
CUSTOMERS_MIN: Final = 30
"""Fewer would make fewer orders than StockLevel looks at."""
FIRST_PAYMENT: Final = 10_00
"""In cents: what each customer has paid at the start."""


@dataclass(frozen=True)
class Settings:
    """The options of a workload; raises `ConfigurationError` for what cannot be.

    `customers` are those of a district. `mix` is one of `MIXES`. `remote_item` is the share of order lines that another
    warehouse supplies, and `remote_customer` that of payments whose customer is another warehouse's; of one warehouse
    alone there are none. `rollback` is the share of NewOrders that name an item that does not exist, `by_name` that of
    Payments and OrderStatuses that give a last name. The same `data_seed` makes the same rows.
    """

    warehouses: int = 4
    items: int = 10_000
    customers: int = 300
    mix: str = STANDARD
    remote_item: float = 0.01
    rollback: float = 0.01
    remote_customer: float = 0.15
    by_name: float = 0.6
    data_seed: int = 1

    def __post_init__(self) -> None:
        _require(self.warehouses >= 1, f"there is at least 1 warehouse, got {self.warehouses}")
        _require(1 <= self.items <= ITEMS, f"the number of items is from 1 to {ITEMS}, got {self.items}")
        _require(
            CUSTOMERS_MIN <= self.customers <= CUSTOMERS,
            f"the number of a district's customers is from {CUSTOMERS_MIN} to {CUSTOMERS}, got {self.customers}",
        )
        _require(self.mix in MIXES, f"there is no mix {self.mix!r}; there are {', '.join(MIXES)}")
        for name in ("remote_item", "rollback", "remote_customer", "by_name"):
            share = getattr(self, name)
            # Written so that a NaN is refused.
            _require(
                0 <= share <= 1,
                f"the share --{name.replace('_', '-')} is from 0 to 1, such as 0.15 for 15 %; got {share}",
            )

    @property
    def orders(self) -> int:
        """Initial orders of a district: one of each customer."""
        return self.customers

    @property
    def undelivered(self) -> int:
        """Initial orders of a district that are not delivered: the last 30 %."""
        return self.orders * 3 // 10

    @property
    def delivered(self) -> int:
        """Initial orders of a district that are delivered."""
        return self.orders - self.undelivered

    @property
    def last_names(self) -> int:
        """Different last names in a district, each of which some customer has."""
        return self.customers * LAST_NAMES // CUSTOMERS

    @property
    def district_ytd(self) -> int:
        """A district's initial year-to-date amount, in cents: what its customers have paid."""
        return self.customers * FIRST_PAYMENT

    @property
    def warehouse_ytd(self) -> int:
        """A warehouse's initial year-to-date amount, in cents."""
        return DISTRICTS * self.district_ytd


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigurationError(message)

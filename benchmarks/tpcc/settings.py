"""The settings of a TPC-C workload: values, defaults and checks.

The standard's cardinalities of a warehouse are the largest. A smaller warehouse has fewer items or fewer customers, and
what the standard counts by them shrinks alike: stock, last names, orders, those undelivered, and the initial
year-to-date amounts, so that every consistency condition holds at every scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from benchmarks.driver.settings import require, require_shares, setting, share
from benchmarks.tpcc.mixes import MIXES, STANDARD
from benchmarks.tpcc.tables import DISTRICTS

ITEMS: Final = 100_000
"""In the standard's catalogue, and so the rows of stock of a warehouse."""
CUSTOMERS: Final = 3_000
"""Customers of a district in the standard; also its initial orders."""
LAST_NAMES: Final = 1_000
"""Last names of a district's customers in the standard."""
CUSTOMERS_MIN: Final = 30
"""Fewer would make fewer orders than StockLevel looks at."""
FIRST_PAYMENT: Final = 10_00
"""In cents: what each customer has paid at the start."""

LOCAL: Final = "local"
ORDINARY: Final = "ordinary"


@dataclass(frozen=True)
class Settings:
    """The options of a workload; raises `ConfigurationError` for what cannot be. `customers` are a district's."""

    warehouses: int = setting(4, "each with 10 districts; all of a warehouse is on one slot (default %(default)s)")
    items: int = 10_000
    customers: int = 300
    mix: str = setting(
        STANDARD,
        "standard: 45 %% NewOrder, 43 %% Payment, 4 %% of each of the others; new-order-payment: 52 %% and 48 %%; or "
        "one transaction alone (default %(default)s)",
        choices=MIXES,
    )
    remote_item: float = share(0.01, "of the order lines: those that another warehouse supplies (default %(default)s)")
    rollback: float = share(
        0.01, "of the NewOrders: those that name an item that does not exist, and abort (default %(default)s)"
    )
    remote_customer: float = share(0.15, "of the Payments: those of another warehouse's customer (default %(default)s)")
    by_name: float = share(
        0.6, "of the Payments and OrderStatuses: those by the customer's last name (default %(default)s)"
    )
    at_home: str = setting(
        LOCAL,
        "how Deliveries are sent, and NewOrders and Payments that stay in their warehouse: local or ordinary functions "
        "(default %(default)s)",
        choices=(LOCAL, ORDINARY),
    )
    data_seed: int = setting(1, "the same one makes the same rows (default %(default)s)")

    def __post_init__(self) -> None:
        require(self.warehouses >= 1, f"there is at least 1 warehouse, got {self.warehouses}")
        require(1 <= self.items <= ITEMS, f"the number of items is from 1 to {ITEMS}, got {self.items}")
        require(
            CUSTOMERS_MIN <= self.customers <= CUSTOMERS,
            f"the number of a district's customers is from {CUSTOMERS_MIN} to {CUSTOMERS}, got {self.customers}",
        )
        require(self.mix in MIXES, f"there is no mix {self.mix!r}; there are {', '.join(MIXES)}")
        require(self.at_home in (LOCAL, ORDINARY), f"--at-home is {LOCAL} or {ORDINARY}, got {self.at_home!r}")
        require_shares(self, "0.15 for 15 %", "remote_item", "rollback", "remote_customer", "by_name")

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

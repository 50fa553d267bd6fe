"""What an audit finds: a criterion that does not hold, for whom, what was found there, and what was expected."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Criterion(StrEnum):
    """The criteria, by the names of their specification. Those behind BAL are of its continuous queries, of carts, and
    of errors.
    """

    ATOM = "ATOM"
    """A checkout's effects are in all services, or in none."""
    COMM = "COMM"
    """A service touches another one's state by its functions and events only."""
    S1 = "S#1"
    """The stock has the version of its product, and no other version is reserved."""
    S2 = "S#2"
    """A submission has one order at most, and an item of a cart is ordered once."""
    S3 = "S#3"
    """Never are more pieces reserved than there are, and none comes from nowhere."""
    S4 = "S#4"
    """A customer's counts are those of the events about the customer."""
    S5 = "S#5"
    """The changes of a product have one order, which is that of their answers; a stale price changes nothing."""
    S6 = "S#6"
    """Each package is delivered once, and a delivery serves the ten sellers with the oldest orders."""
    S7 = "S#7"
    """What the stock has answered is what it answers one request after the other."""
    ORD = "ORD"
    """An order takes its steps in their order."""
    DEL = "DEL"
    """Each event has its effect in each service that hears of it, once."""
    R1 = "R1"
    """In the end each copy is as its product."""
    R2 = "R2"
    """What carts see of one product never goes back."""
    R3 = "R3"
    """What a cart sees of one seller's products is a beginning of that seller's changes."""
    TOGETHER = "TOGETHER"
    """Carts see the latest committed change, if copies change with their products."""
    SNAP = "SNAP"
    """A dashboard's two parts are of one moment, and are what the log says of that moment (query C.1)."""
    LOG_A = "LOG-a"
    """Orders that have ended are archived."""
    LOG_B = "LOG-b"
    """Sellers' entries of orders that have ended are archived."""
    LOG_C = "LOG-c"
    """Shipments that are concluded are archived."""
    LOG_D = "LOG-d"
    """Payments are archived, however they ended."""
    PSP = "PSP"
    """The provider is asked once for each invoice, and its answer is what happens."""
    MONEY = "MONEY"
    """All sums are exact."""
    BAL = "BAL"
    """What clients believe of the products is so."""
    C2 = "C.2"
    """Abandoned carts are told, each failed checkout once."""
    C3 = "C.3"
    """Low stock is told when it begins and when it ends."""
    CART = "CART"
    """A checkout is of what its customer has put in the cart, at no higher price than was shown."""
    ERR = "ERR"
    """No request fails but by what the application refuses on purpose."""


class Violation(NamedTuple):
    """A criterion that does not hold. `entity` says for whom, such as `order (3, 7)`."""

    criterion: Criterion
    entity: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.criterion}: {self.entity}: found {self.found}; expected {self.expected}"

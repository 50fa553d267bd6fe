"""The names of the five transactions, and their shares of the requests.

Clause 5.2.3 has at least 43 % Payments and at least 4 % of each of the last three; what is left are NewOrders.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NEW_ORDER: Final = "new-order"
PAYMENT: Final = "payment"
ORDER_STATUS: Final = "order-status"
DELIVERY: Final = "delivery"
STOCK_LEVEL: Final = "stock-level"

STANDARD: Final = "standard"
MIXES: Final[Mapping[str, Mapping[str, float]]] = {
    STANDARD: {NEW_ORDER: 0.45, PAYMENT: 0.43, ORDER_STATUS: 0.04, DELIVERY: 0.04, STOCK_LEVEL: 0.04},
    "new-order-payment": {NEW_ORDER: 0.52, PAYMENT: 0.48},
    **{kind: {kind: 1.0} for kind in (NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL)},
}
"""By name: the standard's, that of the Styx paper, and each transaction alone."""

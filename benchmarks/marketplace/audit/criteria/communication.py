"""COMM: a service touches another one's state by the functions and events only that the other one offers to it.

The engine keeps rows of other operators out of reach, and refuses each call that the app's graphs do not have. So what
may be touched is what the graphs say, and what was tried beyond that is in the answers of the requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.violation import Criterion, Violation

SERVICES: Final = {"replica": "cart", "queue": "shipment"}
"""The services of operators that have another name than their service."""

OFFERED: Final = {
    ("cart", "customer.known"),
    ("cart", "stock.reserve"),
    ("cart", "order.place"),
    ("cart", "customer.reservation_failed"),
    ("cart", "customer.cart_given_up"),
    ("order", "seller.invoiced"),
    ("order", "payment.pay"),
    ("payment", "stock.confirm"),
    ("payment", "stock.release"),
    ("payment", "seller.payment_has_failed"),
    ("payment", "order.payment_has_failed"),
    ("payment", "customer.payment_succeeded"),
    ("payment", "customer.payment_has_failed"),
    ("payment", "cart.payment_has_failed"),
    ("payment", "shipment.pack"),
    ("shipment", "order.packed"),
    ("shipment", "order.follow_shipment"),
    ("shipment", "seller.shipped"),
    ("shipment", "seller.follow_shipment"),
    ("shipment", "customer.packages_delivered"),
    ("stock", "seller.warned"),
    ("product", "stock.follow_product"),
    ("product", "stock.clear"),
    ("product", "replica.follow"),
    ("product", "replica.relay"),
}
"""(calling service, function): E2 to E9, E0 and E1, the three queries, and whether a customer is known. No service may
read another one's products, stock, orders or entries; dashboards are read by clients.
"""
BEYOND: Final = {"OutsideGraph", "BadQuery"}
"""The errors by which the engine refuses what is not offered: calls outside the graphs, rows of another operator."""


def violations(run: Run) -> Iterator[Violation]:
    """Looks at what the graphs allow, and at what was refused."""
    for caller, callee in run.calls:
        service = _service(caller)
        if service != _service(callee) and (service, callee) not in OFFERED:
            found = f"it may call {callee}"
            yield Violation(Criterion.COMM, caller, found, f"a function that {_service(callee)} offers to {service}")
    for asked in run.record:
        if asked.error in BEYOND:
            entity = f"{asked.function} of {asked.key}, request {asked.client}-{asked.number}"
            yield Violation(Criterion.COMM, entity, f"refused by {asked.error}", "only what other services offer")


def _service(function: str) -> str:
    operator = function.partition(".")[0]
    return SERVICES.get(operator, operator)

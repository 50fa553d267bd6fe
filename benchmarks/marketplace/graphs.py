"""What may call what: a transaction graph for each operation. `styx graph benchmarks.marketplace.app:app` shows all."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from benchmarks.marketplace import events
from benchmarks.marketplace.services.cart.replica import Replication
from styx import Event, Graph

PAYMENT: Final = [
    ("payment.pay", "stock.confirm"),
    ("payment.pay", "stock.release"),
    ("payment.pay", "seller.payment_has_failed"),
    ("payment.pay", "order.payment_has_failed"),
    ("payment.pay", "customer.payment_succeeded"),
    ("payment.pay", "customer.payment_has_failed"),
    ("payment.pay", "cart.payment_has_failed"),
    ("payment.pay", "shipment.pack"),
    ("stock.release", "seller.warned"),
    ("shipment.pack", "order.packed"),
    ("shipment.pack", "seller.shipped"),
    ("shipment.pack", "queue.wait"),
]
CHECKOUT: Final = [
    ("cart.checkout", "customer.known"),
    ("cart.checkout", "replica.request"),
    ("cart.checkout", "order.place"),
    ("cart.checkout", "cart.reservation_failed"),
    ("cart.checkout", "customer.reservation_failed"),
    ("replica.request", "stock.reserve"),
    ("stock.reserve", "seller.warned"),
    ("order.place", "seller.invoiced"),
    ("order.place", "payment.pay"),
    *PAYMENT,
]
DELIVERY: Final = [
    ("queue.update_delivery", "shipment.deliver"),
    ("shipment.deliver", "customer.packages_delivered"),
    ("shipment.deliver", "order.follow_shipment"),
    ("shipment.deliver", "seller.follow_shipment"),
]
ABANDONMENT: Final = [("cart.abandon", "cart.mark_abandoned"), ("cart.abandon", "customer.cart_given_up")]
RESTOCK: Final = [("stock.restock", "seller.warned")]
LOOK_AGAIN: Final = [("stock.look_again", "seller.warned")]
PURGE: Final = [("product.purge", "stock.clear"), ("stock.clear", "seller.warned")]


PUBLISHERS: Final[dict[str, list[Event[Any]]]] = {
    "cart.checkout": [events.reserve_stock, events.stock_confirmed, events.reserve_stock_failed],
    "order.place": [events.invoice_issued],
    "payment.pay": [events.payment_confirmed, events.payment_failed, events.payment_archived],
    "shipment.deliver": [events.delivery_notification, events.shipment_archived],
    "product.set_price": [events.price_updated],
    "cart.abandon": [events.cart_abandoned],
    "stock.restock": [events.stock_increased],
}
"""The events that one function alone may emit."""


def graphs(replication: Replication) -> list[Graph]:
    """New graphs, of all operations that call anything."""
    copies = _COPIES.get(replication, [])
    price = [("product.set_price", callee) for callee in copies[:1]]
    replace = [("product.replace", callee) for callee in ["stock.follow_product", *copies[:1]]]
    delete = [("product.delete", callee) for callee in ["stock.follow_product", *copies[:1]]]
    further = list(pairwise(copies))
    return [
        _graph("checkout", CHECKOUT),
        _graph("payment", PAYMENT),
        *([_graph("price-update", price + further)] if price else []),
        _graph("product-update", replace + further),
        _graph("product-delete", delete + further),
        _graph("product-purge", PURGE),
        _graph("delivery", DELIVERY),
        _graph("abandonment", ABANDONMENT),
        _graph("restock", RESTOCK),
        _graph("demand-ages", LOOK_AGAIN),
    ]


_COPIES: Final = {
    Replication.TOGETHER: ["replica.follow", "cart.reprice_here"],
    Replication.EVENTUAL: ["replica.relay"],
}
"""What a change of a product calls in its transaction, one after the other."""


def _graph(name: str, edges: list[tuple[str, str]]) -> Graph:
    """The graph that begins where its first edge does; who calls nobody is a terminal."""
    made = Graph(name, start=edges[0][0])
    for caller, callee in edges:
        made.edge(caller, callee)
    callers = dict.fromkeys(caller for caller, _ in edges)
    made.terminal(*dict.fromkeys(callee for _, callee in edges if callee not in callers))
    for caller in callers:
        if caller in PUBLISHERS:
            made.publishes(caller, *PUBLISHERS[caller])
    return made

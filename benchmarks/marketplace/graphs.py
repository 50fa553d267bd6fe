"""What may call what: a transaction graph for each operation. `styx graph benchmarks.marketplace.app:app` shows all."""

from __future__ import annotations

from typing import Final

from benchmarks.marketplace.services.cart.replica import Replication
from styx import Graph

PAYMENT: Final = [
    ("payment.pay", "stock.confirm"),
    ("payment.pay", "stock.release"),
    ("payment.pay", "seller.payment_succeeded"),
    ("payment.pay", "seller.payment_has_failed"),
    ("payment.pay", "order.payment_succeeded"),
    ("payment.pay", "order.payment_has_failed"),
    ("payment.pay", "customer.payment_succeeded"),
    ("payment.pay", "customer.payment_has_failed"),
    ("payment.pay", "cart.payment_has_failed"),
    ("payment.pay", "shipment.pack"),
    ("stock.release", "seller.warned"),
    ("shipment.pack", "order.follow_shipment"),
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
    ("order.place", "payment.take"),
    ("payment.take", "payment.pay"),
    *PAYMENT,
]
DELIVERY: Final = [
    ("shipment.update_delivery", "queue.oldest_here"),
    ("shipment.update_delivery", "queue.serve"),
    ("shipment.update_delivery", "shipment.deliver"),
    ("shipment.deliver", "seller.package_delivered"),
    ("shipment.deliver", "customer.package_delivered"),
    ("shipment.deliver", "order.follow_shipment"),
    ("shipment.deliver", "seller.follow_shipment"),
]
ABANDONMENT: Final = [("cart.abandon", "cart.mark_abandoned"), ("cart.abandon", "customer.cart_given_up")]
RESTOCK: Final = [("stock.restock", "seller.warned")]
LOOK_AGAIN: Final = [("stock.look_again", "seller.warned")]
PURGE: Final = [("product.purge", "stock.clear"), ("stock.clear", "seller.warned")]


def graphs(replication: Replication) -> list[Graph]:
    """New graphs, of all operations that call anything."""
    copy = {Replication.TOGETHER: ["follow"], Replication.EVENTUAL: ["relay"]}.get(replication, [])
    price = [("product.set_price", f"replica.{function}") for function in copy]
    replace = [("product.replace", callee) for callee in _followers(copy)]
    delete = [("product.delete", callee) for callee in _followers(copy)]
    return [
        _graph("checkout", CHECKOUT),
        _graph("payment", PAYMENT),
        *([_graph("price-update", price)] if price else []),
        _graph("product-update", replace),
        _graph("product-delete", delete),
        _graph("product-purge", PURGE),
        _graph("delivery", DELIVERY),
        _graph("abandonment", ABANDONMENT),
        _graph("restock", RESTOCK),
        _graph("demand-ages", LOOK_AGAIN),
    ]


def _followers(copy: list[str]) -> list[str]:
    return ["stock.follow_product", *(f"replica.{function}" for function in copy)]


def _graph(name: str, edges: list[tuple[str, str]]) -> Graph:
    """The graph that begins where its first edge does; who calls nobody is a terminal."""
    made = Graph(name, start=edges[0][0])
    for caller, callee in edges:
        made.edge(caller, callee)
    callers = {caller for caller, _ in edges}
    return made.terminal(*dict.fromkeys(callee for _, callee in edges if callee not in callers))

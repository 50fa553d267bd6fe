"""The marketplace as an app: all of its services, with the copies of products that the settings say."""

from __future__ import annotations

from typing import Any

from benchmarks.marketplace import settings
from benchmarks.marketplace.events import EVENTS
from benchmarks.marketplace.graphs import graphs
from benchmarks.marketplace.services.cart import abandoning, checking_out, filling, repricing
from benchmarks.marketplace.services.cart.replica import Replication, replica_with
from benchmarks.marketplace.services.cart.rows import cart
from benchmarks.marketplace.services.customer import counting
from benchmarks.marketplace.services.customer.rows import customer
from benchmarks.marketplace.services.order import following, placing
from benchmarks.marketplace.services.order.rows import order
from benchmarks.marketplace.services.payment import paying
from benchmarks.marketplace.services.payment.rows import payment
from benchmarks.marketplace.services.product import selling
from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.services.seller import dashboard
from benchmarks.marketplace.services.seller import following as entries
from benchmarks.marketplace.services.seller.rows import seller
from benchmarks.marketplace.services.shipment import delivering, packing, queueing
from benchmarks.marketplace.services.shipment.rows import queue, shipment
from benchmarks.marketplace.services.stock import demand, reserving
from benchmarks.marketplace.services.stock.rows import stock
from styx import App, Operator

FILES = (
    *(filling, checking_out, abandoning, repricing, selling, reserving, demand, placing, following, paying),
    *(packing, queueing, delivering, counting, entries, dashboard),
)
"""The modules of the functions. Importing a module registers its functions with the operators."""


def make_app(replication: Replication) -> App:
    """The app, whose carts' copies follow the products as `replication` says.

    The order of the operators is the one in which they hear of one event.
    """
    operators: list[Operator[Any, Any]] = [
        cart,
        replica_with(replication),
        product,
        stock,
        order,
        payment,
        shipment,
        queue,
        customer,
        seller,
    ]
    return App("marketplace", operators, events=EVENTS, graphs=graphs(replication))


app = make_app(Replication(settings.REPLICATION))

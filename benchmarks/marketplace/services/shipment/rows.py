"""What the service of shipments keeps: each customer's shipments with their packages, and the orders that wait for
delivery. Each seller's first one is a row of its own, too, so that the oldest ones of all sellers need no scan.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from benchmarks.marketplace.values import PackageStatus, ShipmentStatus
from styx import Index, Operator, Ref


class Shipment(Struct, array_like=True):
    """The shipment of an order."""

    order_id: int
    package_count: int
    total_freight_value: int
    request_date: datetime
    status: ShipmentStatus
    first_name: str
    last_name: str
    street: str
    complement: str
    zip_code: str
    city: str
    state: str


class Package(Struct, array_like=True):
    """One line of an order, as it is delivered. `package_id` counts from 1 within the shipment."""

    order_id: int
    package_id: int
    seller_id: int
    product_id: int
    product_name: str
    freight_value: int
    quantity: int
    shipping_date: datetime
    delivery_date: datetime | None
    status: PackageStatus


class Waiting(Struct, array_like=True):
    """An order of which a seller has packages that are not delivered."""

    seller_id: int
    shipping_date: datetime
    customer_id: int
    order_id: int
    packages: int


class First(Struct, array_like=True):
    """The oldest order of a seller that waits; at most one row for each seller."""

    seller_id: int
    shipping_date: datetime
    customer_id: int
    order_id: int
    packages: int


shipment = Operator("shipment", key_type=int)
shipments = shipment.table("shipments", Shipment, key="order_id")
packages = shipment.table(
    "packages",
    Package,
    key=("order_id", "package_id"),
    references=[Ref("order_id", shipments)],
)

QUEUE: Final = 0
"""The key of the only entity: the order of all deliveries is one, so one entity keeps it."""

queue = Operator("queue", key_type=int)
waiting = queue.table("waiting", Waiting, key=("seller_id", "shipping_date", "customer_id", "order_id"))
firsts = queue.table(
    "firsts",
    First,
    key="seller_id",
    indexes=[Index("oldest", order=("shipping_date", "customer_id", "order_id", "seller_id"))],
)

"""What the service of orders keeps. An entity is a customer with all orders of that customer."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from benchmarks.marketplace.values import OrderStatus
from styx import Index, Operator, Ref


class Order(Struct, array_like=True):
    """An order. `total_invoice` is `total_amount` and `total_freight`; `total_amount` is `total_items` less
    `total_incentive`; `count_items` is the number of lines.
    """

    order_id: int
    checkout_id: str
    invoice_number: str
    status: OrderStatus
    purchase_date: datetime
    payment_date: datetime | None
    delivered_carrier_date: datetime | None
    delivered_customer_date: datetime | None
    estimated_delivery_date: datetime | None
    count_items: int
    total_amount: int
    total_freight: int
    total_incentive: int
    total_invoice: int
    total_items: int
    created_at: datetime
    updated_at: datetime


class OrderItem(Struct, array_like=True):
    """A line of an order."""

    order_id: int
    order_item_id: int
    seller_id: int
    product_id: int
    product_name: str
    unit_price: int
    freight_value: int
    quantity: int
    total_items: int
    total_incentive: int
    total_amount: int
    shipping_limit_date: datetime


class OrderHistory(Struct, array_like=True):
    """When an order came to a status."""

    order_id: int
    created_at: datetime
    status: OrderStatus
    seq: int = 0


order = Operator("order", key_type=int)
orders = order.table(
    "orders",
    Order,
    key="order_id",
    indexes=[
        Index("by_checkout", equal="checkout_id", unique=True),
        Index("by_invoice", equal="invoice_number", unique=True),
    ],
)
order_items = order.table(
    "order_items", OrderItem, key=("order_id", "order_item_id"), references=[Ref("order_id", orders)]
)
order_history = order.table(
    "order_history",
    OrderHistory,
    key="seq",
    auto="serial",
    indexes=[Index("of_order", equal="order_id", order="seq")],
    references=[Ref("order_id", orders)],
)

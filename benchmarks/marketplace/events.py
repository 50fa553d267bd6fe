"""The events of the marketplace, by the numbers E0 to E9 of its specification, and those of its queries and archives.

They are durable: in a cluster each is a topic of Kafka. The archives hold what has ended, for the audit and for years.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from benchmarks.marketplace.services.order.rows import Order, OrderHistory, OrderItem
from benchmarks.marketplace.services.payment.rows import PaymentCard, PaymentRow
from benchmarks.marketplace.services.product.rows import Product
from benchmarks.marketplace.services.seller.rows import EntryDetails, OrderEntry
from benchmarks.marketplace.services.shipment.rows import Package, Shipment
from benchmarks.marketplace.values import (
    Buyer,
    Invoice,
    OrderLine,
    PackageStatus,
    RefusedItem,
    RequestedItem,
    ShipmentStatus,
)
from styx import Event

KEPT: Final = timedelta(days=365)
"""How long archives are kept, at least."""


class PriceUpdated(Struct, frozen=True):
    """E0, from Product to Cart. `change` numbers the changes of the product."""

    seller_id: int
    product_id: int
    price: int
    version: str
    change: int


class ProductUpdated(Struct, frozen=True):
    """E1, from Product to Stock and Cart: the whole new product, which is inactive if it was deleted."""

    seller_id: int
    product_id: int
    product: Product


class ProductChanged(Struct, frozen=True):
    """What E0 and E1 mean for copies, in one stream, because subscriptions to two events have no common order."""

    seller_id: int
    product_id: int
    price: int
    version: str
    active: bool
    change: int


class ReserveStock(Struct, frozen=True):
    """E2, from Cart to Stock."""

    timestamp: datetime
    buyer: Buyer
    items: list[RequestedItem]


class StockConfirmed(Struct, frozen=True):
    """E3, from Stock to Order: the items that are reserved, and those that are not."""

    timestamp: datetime
    buyer: Buyer
    items: list[RequestedItem]
    refused: list[RefusedItem]


class ReserveStockFailed(Struct, frozen=True):
    """E4, from Stock to Customer and Cart: no item is reserved."""

    timestamp: datetime
    buyer: Buyer
    products: list[RefusedItem]


class InvoiceIssued(Struct, frozen=True):
    """E5, from Order to Seller: the invoice with the lines of one seller alone; `total_invoice` is that of the order.
    Payment gets the whole invoice, by a call.
    """

    seller_id: int
    invoice: Invoice


class PaymentConfirmed(Struct, frozen=True):
    """E6, from Payment to Shipment, Stock, Order, Customer and Seller."""

    buyer: Buyer
    order_id: int
    total_amount: int
    lines: list[OrderLine]
    date: datetime


class PaymentFailed(Struct, frozen=True):
    """E7, from Payment to Stock, Order, Customer, Seller and Cart. `status` is rejected or unreachable."""

    status: str
    buyer: Buyer
    order_id: int
    total_amount: int
    lines: list[OrderLine]
    date: datetime


class ShipmentNotification(Struct, frozen=True):
    """E8, from Shipment to Order and Seller."""

    customer_id: int
    order_id: int
    event_date: datetime
    status: ShipmentStatus


class DeliveryNotification(Struct, frozen=True):
    """E9, from Shipment to Seller and Customer."""

    customer_id: int
    order_id: int
    package_id: int
    seller_id: int
    product_id: int
    product_name: str
    status: PackageStatus
    delivery_date: datetime


class StockIncreased(Struct, frozen=True):
    """Pieces of a product have come."""

    seller_id: int
    product_id: int
    quantity: int
    qty_available: int


class TransactionMark(Struct, frozen=True):
    """How a checkout has ended. `status` is SUCCESS, ABORT (its payment failed) or NOT_ACCEPTED (nothing could be
    reserved); `tid` its checkout id, `actor_id` its customer, `source` the service that ended it.
    """

    tid: str
    type: str
    actor_id: int
    status: str
    source: str


class CartAbandoned(Struct, frozen=True):
    """Query 2, to Cart and Customer: a checkout failed, and nobody tried again in time."""

    checkout_id: str
    customer_id: int
    cause: str
    failed_at: datetime
    abandoned_at: datetime


class LowStockWarning(Struct, frozen=True):
    """Query 3, to Seller: a week needs `demand` / 4 pieces, and `level` are left. `low` False takes a warning back."""

    seller_id: int
    product_id: int
    low: bool
    level: int
    demand: int
    at: datetime


class OrderArchived(Struct, frozen=True):
    """Log (a): an order that is delivered or whose payment has failed."""

    customer_id: int
    order: Order
    items: list[OrderItem]
    history: list[OrderHistory]


class EntriesArchived(Struct, frozen=True):
    """Log (b): a seller's entries of an order that is concluded or whose payment has failed."""

    seller_id: int
    details: EntryDetails
    entries: list[OrderEntry]


class ShipmentArchived(Struct, frozen=True):
    """Log (c): a shipment that is concluded."""

    customer_id: int
    shipment: Shipment
    packages: list[Package]


class PaymentArchived(Struct, frozen=True):
    """Log (d): a payment, however it ended."""

    customer_id: int
    invoice_number: str
    payments: list[PaymentRow]
    cards: list[PaymentCard]


price_updated = Event("price-updated", PriceUpdated)
product_updated = Event("product-updated", ProductUpdated)
product_changed = Event("product-changed", ProductChanged)
reserve_stock = Event("reserve-stock", ReserveStock)
stock_confirmed = Event("stock-confirmed", StockConfirmed)
reserve_stock_failed = Event("reserve-stock-failed", ReserveStockFailed)
invoice_issued = Event("invoice-issued", InvoiceIssued)
payment_confirmed = Event("payment-confirmed", PaymentConfirmed)
payment_failed = Event("payment-failed", PaymentFailed)
shipment_notification = Event("shipment-notification", ShipmentNotification)
delivery_notification = Event("delivery-notification", DeliveryNotification)
stock_increased = Event("stock-increased", StockIncreased)
transaction_mark = Event("transaction-mark", TransactionMark)
cart_abandoned = Event("cart-abandoned", CartAbandoned)
low_stock_warning = Event("low-stock-warning", LowStockWarning)
order_archived = Event("order-archived", OrderArchived, keep=KEPT)
entries_archived = Event("entries-archived", EntriesArchived, keep=KEPT)
shipment_archived = Event("shipment-archived", ShipmentArchived, keep=KEPT)
payment_archived = Event("payment-archived", PaymentArchived, keep=KEPT)

EVENTS: Final[list[Event[Any]]] = [
    price_updated,
    product_updated,
    product_changed,
    reserve_stock,
    stock_confirmed,
    reserve_stock_failed,
    invoice_issued,
    payment_confirmed,
    payment_failed,
    shipment_notification,
    delivery_notification,
    stock_increased,
    transaction_mark,
    cart_abandoned,
    low_stock_warning,
    order_archived,
    entries_archived,
    shipment_archived,
    payment_archived,
]
"""All of them, for the app."""

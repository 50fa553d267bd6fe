"""What the functions that clients call give back. They do nothing."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from benchmarks.marketplace.services.cart.rows import CartItemRow, CartStatus
from benchmarks.marketplace.services.order.rows import Order, OrderHistory, OrderItem
from benchmarks.marketplace.services.payment.rows import PaymentCard, PaymentRow
from benchmarks.marketplace.services.seller.rows import EntryDetails, OrderEntry
from benchmarks.marketplace.services.shipment.rows import Package, Shipment
from benchmarks.marketplace.values import RefusedItem


class CartContents(Struct):
    """A cart. A customer who never put anything into it has an open and empty one."""

    status: CartStatus
    items: list[CartItemRow]


class CheckoutOutcome(StrEnum):
    """ACCEPTED: there is an order. NOT_ACCEPTED: nothing could be reserved, and there is none."""

    ACCEPTED = "ACCEPTED"
    NOT_ACCEPTED = "NOT_ACCEPTED"


class CheckoutResult(Struct):
    """What became of a submission. `repeated`: its checkout id was submitted before, and this is what became of it."""

    outcome: CheckoutOutcome
    order_id: int | None
    refused: list[RefusedItem]
    repeated: bool = False


class PriceOutcome(StrEnum):
    """STALE: the request's version is not the product's, and nothing has changed."""

    UPDATED = "UPDATED"
    STALE = "STALE"


class PriceResult(Struct):
    """The product's version and price after the request, and its number of changes."""

    outcome: PriceOutcome
    version: str
    price: int
    change: int


class OrderShown(Struct):
    """An order with its lines and its history."""

    order: Order
    items: list[OrderItem]
    history: list[OrderHistory]


class PaymentShown(Struct):
    """The payments of an order, and their card if there was one."""

    payments: list[PaymentRow]
    cards: list[PaymentCard]


class ShipmentShown(Struct):
    """A shipment and its packages."""

    shipment: Shipment
    packages: list[Package]


class Delivered(Struct):
    """An order of which all packages of one seller were delivered."""

    seller_id: int
    customer_id: int
    order_id: int
    shipping_date: datetime
    packages: int


class DeliveryResult(Struct):
    """What an Update Delivery has delivered: at most ten sellers' oldest orders, the oldest first."""

    tid: str
    delivered: list[Delivered]


class Board(Struct):
    """The sums over a seller's open entries. All are zero if there are none. `count_items` counts products, and
    `count_lines` entries.
    """

    seller_id: int
    count_orders: int
    count_items: int
    count_lines: int
    total_amount: int
    total_freight: int
    total_incentive: int
    total_invoice: int
    total_items: int


class Dashboard(Struct):
    """A seller's board, and the open entries that it sums up, by customer, order and product. Both are of one snapshot,
    which the place of the reply names. `complete`: these are all entries.
    """

    board: Board
    entries: list[OrderEntry]
    details: list[EntryDetails]
    complete: bool

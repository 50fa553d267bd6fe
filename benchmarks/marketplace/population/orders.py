"""The orders that are there from the start, as their services keep them: paid, and delivered or waiting for delivery.

Orders are numbered in the order in which they came: first the first one of each customer. The last ones are those that
are not delivered, so a seller's oldest waiting order is the first to be delivered.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import goods, people
from benchmarks.marketplace.services.cart.rows import CheckoutRow
from benchmarks.marketplace.services.customer.rows import CustomerCounts
from benchmarks.marketplace.services.order.arithmetic import line, total_invoice
from benchmarks.marketplace.services.order.placing import SHIPPING_LIMIT, invoice_number
from benchmarks.marketplace.services.order.rows import Order, OrderHistory, OrderItem
from benchmarks.marketplace.services.payment.rows import PaymentCard, PaymentRow, PaymentStatus
from benchmarks.marketplace.services.seller.rows import EntryDetails, OrderEntry
from benchmarks.marketplace.services.shipment.rows import QUEUE, First, Package, Shipment, Waiting
from benchmarks.marketplace.values import (
    OrderLine,
    OrderStatus,
    PackageStatus,
    PaymentType,
    RequestedItem,
    ShipmentStatus,
)

PRELOADED: Final = "preloaded"
"""The checkout ids of these orders begin so."""
LINES: Final = (1, 10)
PIECES: Final = (1, 10)
_STEP: Final = timedelta(seconds=1)
"""From one step of an order to the next, and from one order to the next."""
_OPEN: Final = (OrderStatus.INVOICED, OrderStatus.PAYMENT_PROCESSED, OrderStatus.READY_FOR_SHIPMENT)
_WHOLE: Final = (*_OPEN, OrderStatus.IN_TRANSIT, OrderStatus.DELIVERED)

Rows = Iterator[tuple[int, Any]]


class Preloaded(NamedTuple):
    """An order, with what its rows are made of."""

    customer_id: int
    order_id: int
    at: datetime
    delivered: bool
    payment_type: PaymentType
    installments: int
    lines: list[OrderLine]

    @property
    def checkout_id(self) -> str:
        """Of a submission that nobody has made."""
        return f"{PRELOADED}-{self.customer_id}-{self.order_id}"

    @property
    def sellers(self) -> list[int]:
        """Who sells something of it."""
        return sorted({each.seller_id for each in self.lines})


def preloaded(settings: Settings) -> Iterator[Preloaded]:
    """All of them, in the order in which they came."""
    whole = settings.customers * settings.orders
    delivered = whole - round(whole * settings.undelivered)
    for number in range(whole):
        before, customer = divmod(number, settings.customers)
        yield _order(settings, customer + 1, before + 1, number, number < delivered)


def _order(settings: Settings, customer_id: int, order_id: int, number: int, delivered: bool) -> Preloaded:
    rng = random.Random(f"{settings.data_seed} order {number}")
    wanted = min(rng.randint(*LINES), settings.products)
    lines = [
        line(place, _item(settings, product, rng.randint(*PIECES)))
        for place, product in enumerate(sorted(rng.sample(range(settings.products), wanted)), 1)
    ]
    kind = rng.choice(list(PaymentType))
    installments = rng.randint(1, 10) if kind is PaymentType.CREDIT_CARD else 1
    return Preloaded(customer_id, order_id, goods.BEGINNING + number * _STEP, delivered, kind, installments, lines)


def _item(settings: Settings, product: int, pieces: int) -> RequestedItem:
    price, freight = goods.prices(settings)[product], goods.freights(settings)[product]
    key = goods.key_of(settings, product)
    return RequestedItem(*key, goods.name_of(product), price, freight, pieces, 0, goods.FIRST_VERSION)


def of_customers(settings: Settings, rows: Callable[[Settings, Preloaded], list[Any]]) -> Rows:
    """What `rows` makes of each order, with the customer as its key."""
    return ((each.customer_id, row) for each in preloaded(settings) for row in rows(settings, each))


def checkouts(_settings: Settings, each: Preloaded) -> list[CheckoutRow]:
    """Of the cart."""
    return [CheckoutRow(each.checkout_id, each.at, each.order_id, [])]


def orders(_settings: Settings, each: Preloaded) -> list[Order]:
    """Of the order."""
    lines, at, delivered = each.lines, each.at, each.delivered
    return [
        Order(
            order_id=each.order_id,
            checkout_id=each.checkout_id,
            invoice_number=invoice_number(each.customer_id, at, each.order_id),
            status=_statuses(each)[-1],
            purchase_date=at,
            payment_date=at + _STEP,
            delivered_carrier_date=at + 3 * _STEP if delivered else None,
            delivered_customer_date=at + 4 * _STEP if delivered else None,
            estimated_delivery_date=None,
            count_items=len(lines),
            total_amount=sum(one.total_amount for one in lines),
            total_freight=sum(one.freight_value for one in lines),
            total_incentive=sum(one.total_incentive for one in lines),
            total_invoice=total_invoice(lines),
            total_items=sum(one.total_items for one in lines),
            created_at=at,
            updated_at=_history(each)[-1][1],
        )
    ]


def order_items(_settings: Settings, each: Preloaded) -> list[OrderItem]:
    """Of the order."""
    return [
        OrderItem(
            each.order_id,
            one.order_item_id,
            one.seller_id,
            one.product_id,
            one.product_name,
            one.unit_price,
            one.freight_value,
            one.quantity,
            one.total_items,
            one.total_incentive,
            one.total_amount,
            each.at + SHIPPING_LIMIT,
        )
        for one in each.lines
    ]


def order_history(_settings: Settings, each: Preloaded) -> list[OrderHistory]:
    """Of the order. Numbers are in the order of the steps within the order, and unique for the customer."""
    first = (each.order_id - 1) * len(_WHOLE) + 1
    return [OrderHistory(each.order_id, at, status, seq) for seq, (status, at) in enumerate(_history(each), first)]


def payments(_settings: Settings, each: Preloaded) -> list[PaymentRow]:
    """Of the payment."""
    value = total_invoice(each.lines)
    at, kind = each.at + _STEP, each.payment_type.value
    return [PaymentRow(each.order_id, 1, kind, each.installments, value, PaymentStatus.SUCCEEDED, at)]


def cards(settings: Settings, each: Preloaded) -> list[PaymentCard]:
    """Of the payment."""
    if each.payment_type is PaymentType.BOLETO:
        return []
    who = people.customer(settings, each.customer_id)
    return [PaymentCard(each.order_id, 1, who.card_number, who.card_holder_name, who.card_expiration, who.card_type)]


def shipments(settings: Settings, each: Preloaded) -> list[Shipment]:
    """Of the shipment."""
    who = people.customer(settings, each.customer_id)
    return [
        Shipment(
            each.order_id,
            len(each.lines),
            sum(one.freight_value for one in each.lines),
            each.at + _STEP,
            ShipmentStatus.CONCLUDED if each.delivered else ShipmentStatus.APPROVED,
            who.first_name,
            who.last_name,
            who.address,
            who.complement,
            who.zip_code,
            who.city,
            who.state,
        )
    ]


def packages(_settings: Settings, each: Preloaded) -> list[Package]:
    """Of the shipment."""
    delivered = each.delivered
    return [
        Package(
            each.order_id,
            number,
            one.seller_id,
            one.product_id,
            one.product_name,
            one.freight_value,
            one.quantity,
            each.at + _STEP,
            each.at + 4 * _STEP if delivered else None,
            PackageStatus.DELIVERED if delivered else PackageStatus.SHIPPED,
        )
        for number, one in enumerate(each.lines, 1)
    ]


def counts(settings: Settings) -> Iterator[tuple[int, CustomerCounts]]:
    """Of each customer."""
    paid: Counter[int] = Counter()
    delivered: Counter[int] = Counter()
    for each in preloaded(settings):
        paid[each.customer_id] += 1
        delivered[each.customer_id] += len(each.lines) if each.delivered else 0
    for number in range(1, settings.customers + 1):
        yield number, CustomerCounts(number, paid[number], 0, delivered[number])


def waiting(settings: Settings) -> Rows:
    """Of the queue."""
    for each in _undelivered(settings):
        for seller_id in each.sellers:
            yield QUEUE, _waiting(each, seller_id)


def firsts(settings: Settings) -> Rows:
    """Of the queue: each seller's first order."""
    seen: set[int] = set()
    for each in _undelivered(settings):
        for seller_id in set(each.sellers) - seen:
            row = _waiting(each, seller_id)
            yield QUEUE, First(seller_id, row.shipping_date, row.customer_id, row.order_id, row.packages)
        seen.update(each.sellers)


def entry_details(settings: Settings) -> Rows:
    """Of each seller's open orders."""
    for each in _undelivered(settings):
        who = people.customer(settings, each.customer_id)
        card = "" if each.payment_type is PaymentType.BOLETO else who.card_type
        for seller_id in each.sellers:
            yield (
                seller_id,
                EntryDetails(
                    each.customer_id,
                    each.order_id,
                    who.first_name,
                    who.last_name,
                    who.address,
                    who.complement,
                    who.zip_code,
                    who.city,
                    who.state,
                    card,
                    each.installments,
                ),
            )


def order_entries(settings: Settings) -> Rows:
    """The lines of each seller's open orders."""
    for each in _undelivered(settings):
        for number, one in enumerate(each.lines, 1):
            yield (
                one.seller_id,
                OrderEntry(
                    customer_id=each.customer_id,
                    order_id=each.order_id,
                    product_id=one.product_id,
                    natural_key=f"{each.customer_id}|{each.order_id}",
                    package_id=number,
                    product_name=one.product_name,
                    product_category=None,
                    unit_price=one.unit_price,
                    quantity=one.quantity,
                    total_items=one.total_items,
                    total_amount=one.total_amount,
                    total_incentive=one.total_incentive,
                    freight_value=one.freight_value,
                    total_invoice=one.total_amount + one.freight_value,
                    shipment_date=each.at + _STEP,
                    delivery_date=None,
                    order_status=OrderStatus.READY_FOR_SHIPMENT,
                    delivery_status=PackageStatus.SHIPPED,
                ),
            )


def _undelivered(settings: Settings) -> Iterator[Preloaded]:
    return (each for each in preloaded(settings) if not each.delivered)


def _waiting(each: Preloaded, seller_id: int) -> Waiting:
    theirs = sum(one.seller_id == seller_id for one in each.lines)
    return Waiting(seller_id, each.at + _STEP, each.customer_id, each.order_id, theirs)


def _statuses(each: Preloaded) -> tuple[OrderStatus, ...]:
    return _WHOLE if each.delivered else _OPEN


def _history(each: Preloaded) -> list[tuple[OrderStatus, datetime]]:
    """Each status, and when the order came to it."""
    return [(status, each.at + step * _STEP) for step, status in enumerate(_statuses(each))]

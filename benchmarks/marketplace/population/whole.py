"""All of a marketplace's data, in the order in which it is loaded: who is referred to comes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchmarks.driver.workload import Loading
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import goods, orders, people
from benchmarks.marketplace.services.cart.rows import cart, checkouts
from benchmarks.marketplace.services.customer.rows import counts, customer
from benchmarks.marketplace.services.order.rows import order, order_history, order_items
from benchmarks.marketplace.services.order.rows import orders as orders_table
from benchmarks.marketplace.services.payment.rows import cards, payment, payments
from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.services.seller.rows import entry_details, order_entries, seller
from benchmarks.marketplace.services.shipment.rows import firsts, packages, queue, shipment, shipments, waiting
from benchmarks.marketplace.services.stock.rows import stock, stock_items
from styx import App


def initial(app: App, settings: Settings) -> Iterator[Loading]:
    """Products and customers first, then the orders that are there."""
    yield Loading(product, settings.products, goods.products(settings))
    yield Loading(app.operators["replica"], settings.products, goods.replicas(settings))
    yield Loading(stock, settings.products, goods.stock(settings), stock_items)
    yield Loading(customer, settings.customers, people.customers(settings))
    yield Loading(customer, settings.customers, orders.counts(settings), counts)
    yield Loading(seller, settings.sellers, people.sellers(settings))
    if settings.orders:
        yield from _orders(settings)


def _orders(settings: Settings) -> Iterator[Loading]:
    sizes = _sizes(settings)
    for operator, table, rows in (
        (cart, checkouts, orders.checkouts),
        (order, orders_table, orders.orders),
        (order, order_items, orders.order_items),
        (order, order_history, orders.order_history),
        (payment, payments, orders.payments),
        (payment, cards, orders.cards),
        (shipment, shipments, orders.shipments),
        (shipment, packages, orders.packages),
    ):
        yield Loading(operator, sizes[table.name], orders.of_customers(settings, rows), table)
    yield Loading(queue, sizes[waiting.name], orders.waiting(settings), waiting)
    yield Loading(queue, sizes[firsts.name], orders.firsts(settings), firsts)
    yield Loading(seller, sizes[entry_details.name], orders.entry_details(settings), entry_details)
    yield Loading(seller, sizes[order_entries.name], orders.order_entries(settings), order_entries)


def _sizes(settings: Settings) -> Counter[str]:
    """The rows of each table of orders."""
    found: Counter[str] = Counter()
    selling: set[int] = set()
    for each in orders.preloaded(settings):
        lines, sellers = len(each.lines), each.sellers
        for name in (checkouts.name, orders_table.name, payments.name, shipments.name):
            found[name] += 1
        for name in (order_items.name, packages.name):
            found[name] += lines
        found[order_history.name] += len(orders.order_history(settings, each))
        found[cards.name] += len(orders.cards(settings, each))
        if not each.delivered:
            found[order_entries.name] += lines
            found[entry_details.name] += len(sellers)
            selling.update(sellers)
    found[waiting.name], found[firsts.name] = found[entry_details.name], len(selling)
    return found

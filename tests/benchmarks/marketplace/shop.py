"""A small marketplace for tests: two sellers with a few products, and what customers do in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from benchmarks.marketplace.answers import CheckoutOutcome
from benchmarks.marketplace.app import make_app
from benchmarks.marketplace.services.cart.replica import Replica, Replication
from benchmarks.marketplace.services.customer.rows import Customer, CustomerCounts, counts, customer
from benchmarks.marketplace.services.product.rows import Offer, Product, product
from benchmarks.marketplace.services.stock.rows import StockItem, stock_items
from benchmarks.marketplace.values import CartItem, CustomerCheckout, PaymentType
from styx.client.base import Client
from styx.testing import EmbeddedCluster, embedded_cluster

THEN = datetime(2026, 1, 1, tzinfo=UTC)
CUSTOMERS = range(1, 6)
PRODUCTS = [(1, 1), (1, 2), (2, 1), (2, 2)]
PIECES = 10
FREIGHT = 3_00


def price_of(key: tuple[int, int]) -> int:
    """In cents: another one for each product."""
    return key[0] * 10_00 + key[1] * 1_00


async def load(client: Client, sellers: int = 0, pieces: int = PIECES) -> None:
    """The products, with copies and stock, and the customers. `sellers`: further ones with one product each."""
    keys = [*PRODUCTS, *((number, 1) for number in range(3, 3 + sellers))]
    made = [(key, _product(price_of(key))) for key in keys]
    await client.load(product, made)
    await client.load("replica", [(key, [each.price, each.version, True, 0]) for key, each in made])
    await client.load_rows(
        stock_items, [(key, StockItem(*key, pieces, 0, 0, 0, "", "v0", True, THEN, THEN)) for key in keys]
    )
    await client.load(customer, [(number, profile()) for number in CUSTOMERS])
    await client.load_rows(counts, [(number, CustomerCounts(number)) for number in CUSTOMERS])


def _product(price: int) -> Product:
    return Product("tea", "SKU", "drinks", "green", price, FREIGHT, "approved", "v0", True, THEN, THEN)


def profile() -> Customer:
    return Customer(
        "Ada", "L.", "1 Road", "", "1990-01-01", "1000", "Delft", "ZH", "4111", "123", "1230", "Ada L.", "VISA"
    )


@asynccontextmanager
async def marketplace(
    replication: Replication = Replication.TOGETHER, sellers: int = 0, pieces: int = PIECES, **options: Any
) -> AsyncIterator[EmbeddedCluster]:
    """A loaded one, whose history is checked at its end."""
    async with embedded_cluster(make_app(replication), **options) as cluster:
        await load(cluster, sellers, pieces)
        yield cluster


def item(seller_id: int = 1, product_id: int = 1, quantity: int = 1, **given: Any) -> CartItem:
    """A line as a customer sees it at the start, with what is `given` instead."""
    values = {
        "seller_id": seller_id,
        "product_id": product_id,
        "product_name": "tea",
        "unit_price": price_of((seller_id, product_id)),
        "freight_value": FREIGHT,
        "quantity": quantity,
        "voucher": 0,
        "version": "v0",
    }
    return CartItem(**values | given)  # type: ignore[arg-type]


_ids = count(1)


def request(customer_id: int, **given: Any) -> CustomerCheckout:
    """A submission with an id of its own, paid by card, with what is `given` instead."""
    values: dict[str, Any] = {
        "customer_id": customer_id,
        "checkout_id": f"c{next(_ids)}",
        "first_name": "Ada",
        "last_name": "L.",
        "street": "1 Road",
        "complement": "",
        "city": "Delft",
        "state": "ZH",
        "zip_code": "1000",
        "payment_type": PaymentType.CREDIT_CARD,
        "installments": 3,
        "card_number": "4111",
        "card_holder_name": "Ada L.",
        "card_expiration": "1230",
        "card_brand": "VISA",
        "card_security_number": "999",
    }
    return CustomerCheckout(**values | given)


async def fill(cluster: Client, customer_id: int, *items: CartItem) -> None:
    for each in items:
        await cluster.call("cart", customer_id, "add_item", each)


async def buy(cluster: EmbeddedCluster, customer_id: int, *items: CartItem, **given: Any) -> dict[str, Any]:
    """Fills the cart and checks it out; the payment has ended when this returns."""
    await fill(cluster, customer_id, *items)
    result: dict[str, Any] = await cluster.call("cart", customer_id, "checkout", request(customer_id, **given))
    await cluster.advance(timedelta(0))
    return result


async def order_of(cluster: Client, customer_id: int, *items: CartItem, **given: Any) -> int:
    """As `buy`, of what is there: the number of the order."""
    result = await buy(cluster, customer_id, *items, **given)  # type: ignore[arg-type]
    assert result["outcome"] == CheckoutOutcome.ACCEPTED
    number: int = result["order_id"]
    return number


def stock_of(cluster: EmbeddedCluster, key: tuple[int, int] = (1, 1)) -> tuple[int, int]:
    """Available and reserved pieces."""
    (row,) = cluster.rows(stock_items, key)
    return row.qty_available, row.qty_reserved


def counts_of(cluster: EmbeddedCluster, customer_id: int) -> CustomerCounts:
    (row,) = cluster.rows(counts, customer_id)
    return row  # type: ignore[no-any-return]


def replica_of(cluster: EmbeddedCluster, key: tuple[int, int] = (1, 1)) -> Replica:
    found: Replica = cluster.entity("replica", key)
    return found


def offer(price: int = 50_00, name: str = "coffee") -> Offer:
    return Offer(name, "SKU2", "drinks", "black", price, FREIGHT)


async def refused(cluster: Client, error: str, *call: Any) -> str:
    """The message with which a request is refused."""
    reply = await cluster.request(*call)
    assert reply.error is not None
    assert reply.error.type == error, reply.error
    return str(reply.error.message)

"""One cart that is checked out many times, each submission sent twice at once, together with changes of its products.

All clients are in this process, with an embedded engine; each request is recorded for the audit. Two sessions of the
cart are under way at once, so they also race with each other: one may find the cart emptied by the other.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

import styx
from benchmarks.driver.workload import Loading
from benchmarks.marketplace.answers import PriceOutcome, PriceResult
from benchmarks.marketplace.app import make_app
from benchmarks.marketplace.audit.driven import loaded_state, terms_here
from benchmarks.marketplace.audit.reading import calls_of, history_of, state_here
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.record import CHUNK, Asked, Kind, Record, now_us, pack
from benchmarks.marketplace.services.customer.rows import Customer, CustomerCounts, counts, customer
from benchmarks.marketplace.services.product.rows import Offer, Product, product
from benchmarks.marketplace.services.stock.rows import StockItem, stock, stock_items
from benchmarks.marketplace.values import CartItem, CustomerCheckout, PaymentType
from styx import App
from styx.client.embedded import EmbeddedClient
from styx.messages import Reply

CUSTOMER: Final = 1
SELLERS: Final = (1, 2)
PRODUCTS: Final = [(seller, number) for seller in SELLERS for number in (1, 2, 3)]
SESSIONS: Final = 2
"""Sessions of the cart that are under way at once."""
PIECES: Final = 40
"""In stock at first, and of each restocking: little, so that checkouts race for the last ones."""
THEN: Final = datetime(2026, 1, 1, tzinfo=UTC)
KEPT_SECONDS: Final = 3_600.0


@dataclass
class Counts:
    """What the race has done so far."""

    checkouts: int = 0
    orders: int = 0
    refused: int = 0
    repeated: int = 0


class Race:
    """The clients of one race. `checkouts` are to be accepted or refused by the stock; `tell` hears of each 1,000."""

    def __init__(self, client: EmbeddedClient, checkouts: int, seed: int, tell: Callable[[Counts], None]) -> None:
        self._client = client
        self._left = checkouts
        self._random = random.Random(seed)
        self._tell = tell
        self._shown: dict[tuple[int, int], Product] = {}
        self._number = 0
        self._open: list[Asked] = []
        self._chunks: list[bytes] = []
        self.counts = Counts()
        self.kinds: Counter[Kind] = Counter()

    async def run(self) -> None:
        """Runs to the end; payments may still be under way."""
        for key in PRODUCTS:
            self._shown[key] = _product(key, "v0", 20_00)
        await asyncio.gather(*(self._sessions() for _ in range(SESSIONS)))

    def record(self) -> Record:
        """All requests."""
        if self._open:
            self._chunks.append(pack(self._open))
            self._open = []
        return Record(self._chunks)

    # What races --------------------------------------------------------------------------------------------

    async def _sessions(self) -> None:
        while self._left > 0:
            self._left -= 1
            name = f"race-{self._next()}"
            keys = self._random.sample(PRODUCTS, self._random.randint(1, 3))
            await asyncio.gather(*(self._add(key, name) for key in keys), *self._changes())
            sent = _submission(name)
            one, other, *_ = await asyncio.gather(
                self._ask(Kind.CHECKOUT, "cart", CUSTOMER, "checkout", sent, session=name),
                self._ask(Kind.CHECKOUT_AGAIN, "cart", CUSTOMER, "checkout", sent, session=name),
                *self._changes(),
            )
            self._count(one, other)

    def _count(self, *replies: Reply) -> None:
        counts = self.counts
        done = [reply.result for reply in replies if reply.error is None]
        if done:
            counts.checkouts += 1
            counts.orders += done[0]["order_id"] is not None
            counts.refused += done[0]["order_id"] is None
            counts.repeated += len(done) - 1
            if counts.checkouts % 1_000 == 0:
                self._tell(counts)
        else:
            self._left += 1  # another session has emptied the cart before: once more

    async def _add(self, key: tuple[int, int], session: str) -> None:
        """As it is shown, which may be an old price or version by the time of the checkout."""
        shown = self._shown[key]
        bought = CartItem(
            *key, shown.name, shown.price, shown.freight_value, self._random.randint(1, 3), 0, shown.version
        )
        await self._ask(Kind.ADD, "cart", CUSTOMER, "add_item", bought, session=session)

    def _changes(self) -> list[Coroutine[Any, Any, Any]]:
        """What races with a step of a session: each kind by its chance."""
        kinds = (
            (self._price, 0.9),
            (self._replacement, 0.3),
            (self._deletion, 0.15),
            (self._restocking, 0.15),
            (self._delivery, 0.8),
        )
        return [act() for act, chance in kinds if self._random.random() < chance]

    async def _price(self) -> None:
        key = self._random.choice(PRODUCTS)
        version, price = self._shown[key].version, self._random.randint(10_00, 30_00)
        reply = await self._ask(Kind.PRICE, "product", key, "set_price", price, version)
        if reply.error is None:
            result = msgspec.convert(reply.result, PriceResult)
            if result.outcome is PriceOutcome.UPDATED and self._shown[key].version == result.version:
                self._shown[key] = _product(key, result.version, result.price)

    async def _replacement(self) -> None:
        await self._replace(self._random.choice(PRODUCTS))

    async def _deletion(self) -> None:
        """A product goes, and another one takes its place."""
        key = self._random.choice(PRODUCTS)
        await self._ask(Kind.WITHDRAW, "product", key, "delete")
        await self._replace(key)

    async def _restocking(self) -> None:
        await self._ask(Kind.RESTOCK, "stock", self._random.choice(PRODUCTS), "restock", PIECES)

    async def _delivery(self) -> None:
        await self._ask(Kind.DELIVERY, "queue", 0, "update_delivery", f"d{self._next()}")

    async def _replace(self, key: tuple[int, int]) -> None:
        version, price = f"v{self._next()}", self._random.randint(10_00, 30_00)
        made = _product(key, version, price)
        offer = Offer(made.name, made.sku, made.category, made.description, price, made.freight_value)
        reply = await self._ask(Kind.REPLACE, "product", key, "replace", offer, version)
        if reply.error is None:
            self._shown[key] = made

    # Requests ----------------------------------------------------------------------------------------------

    def _next(self) -> int:
        self._number += 1
        return self._number

    async def _ask(
        self, kind: Kind, operator: str, key: Any, function: str, *arguments: Any, session: str = ""
    ) -> Reply:
        number, sent_us = self._next(), now_us()
        self.kinds[kind] += 1
        reply = await self._client.request(operator, key, function, *arguments)
        self._open.append(Asked.by(reply, kind, number, sent_us, key, function, *arguments, session=session))
        if len(self._open) == CHUNK:
            self._chunks.append(pack(self._open))
            self._open = []
        return reply


async def raced(
    checkouts: int, seed: int, directory: Path | None = None, tell: Callable[[Counts], None] = lambda counts: None
) -> tuple[Race, Run]:
    """Runs a race on an engine in a new directory, or in memory, and reads what is to be audited."""
    terms = terms_here()
    app = make_app(terms.replication)
    loadings = _loadings(app)
    async with styx.embedded(app, directory, n_slots=16, keep_log=True, snapshot_interval=KEPT_SECONDS) as client:
        for loading in loadings:
            if loading.table is None:
                await client.load(loading.operator, loading.pairs)
            else:
                await client.load_rows(loading.table, loading.pairs)
        race = Race(client, checkouts, seed, tell)
        await race.run()
        if not await client.engine.settled(60):
            raise TimeoutError(f"{client.engine.in_flight} requests are not answered a minute after the race")
        after, history = state_here(client), await history_of(client)
    run = Run(
        before=loaded_state(loadings),
        after=after,
        history=history,
        record=race.record(),
        terms=terms,
        calls=calls_of(app),
    )
    return race, run


def _loadings(app: App) -> list[Loading]:
    products = [(key, _product(key, "v0", 20_00)) for key in PRODUCTS]
    copies = [(key, [each.price, each.version, True, 0]) for key, each in products]
    pieces = [(key, StockItem(*key, PIECES, 0, 0, 0, "", "v0", True, THEN, THEN)) for key in PRODUCTS]
    buyer = Customer(*["x"] * 13)
    return [
        Loading(product, len(products), products),
        Loading(app.operators["replica"], len(copies), copies),
        Loading(stock, len(pieces), pieces, stock_items),
        Loading(customer, 1, [(CUSTOMER, buyer)]),
        Loading(customer, 1, [(CUSTOMER, CustomerCounts(CUSTOMER))], counts),
    ]


def _product(key: tuple[int, int], version: str, price: int) -> Product:
    return Product(f"tea {version}", "SKU", "drinks", "", price, 1_00, "approved", version, True, THEN, THEN)


def _submission(name: str) -> CustomerCheckout:
    texts: dict[str, Any] = dict.fromkeys(
        ("first_name", "last_name", "street", "complement", "city", "state", "zip_code"), "x"
    )
    return CustomerCheckout(customer_id=CUSTOMER, checkout_id=name, payment_type=PaymentType.BOLETO, **texts)

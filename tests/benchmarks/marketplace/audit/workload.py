"""A small random workload on the embedded engine, with the record that its audit needs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import msgspec

from benchmarks.marketplace import settings
from benchmarks.marketplace.answers import Board, Dashboard, PriceResult
from benchmarks.marketplace.app import make_app
from benchmarks.marketplace.audit.audit import audit
from benchmarks.marketplace.audit.reading import calls_of, history_of, state_here
from benchmarks.marketplace.audit.run import Run, Terms
from benchmarks.marketplace.record import Asked, DashboardSeen, Ended, Kind, Mirrored, Record, now_us
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.services.product.rows import Product, product
from benchmarks.marketplace.values import CustomerCheckout
from styx.testing import EmbeddedCluster
from tests.benchmarks.marketplace.shop import CUSTOMERS, PRODUCTS, item, load, offer, request

EXTRA_SELLERS: Final = 12
"""Further sellers with one product each, so that a delivery cannot serve all."""
N_SLOTS: Final = 16
Act = Callable[["Shop"], Awaitable[None]]


class Unchecked(EmbeddedCluster):
    """An engine without the check of its history: mutations break the application's rules, not the engine's."""

    async def check(self) -> Any:
        return None


class Shop:
    """Clients of a marketplace by chance, which record what they ask and get."""

    def __init__(self, cluster: EmbeddedCluster, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.asked: list[Asked] = []
        self.products = [*PRODUCTS, *((number, 1) for number in range(3, 3 + EXTRA_SELLERS))]
        self._number = 0

    def name(self) -> str:
        """Another one each time."""
        self._number += 1
        return str(self._number)

    async def ask(self, kind: Kind, operator: str, key: Any, function: str, *arguments: Any, session: str = "") -> Any:
        """A request, recorded; gives its result."""
        number, sent_us = int(self.name()), now_us()
        reply = await self.cluster.request(operator, key, function, *arguments)
        seen = reply
        if kind is Kind.DASHBOARD and reply.error is None:
            seen = reply._replace(result=_seen(msgspec.convert(reply.result, Dashboard)))
        self.asked.append(Asked.by(seen, kind, number, sent_us, key, function, *arguments, session=session))
        return reply.result

    # By chance ---------------------------------------------------------------------------------------------

    async def mix(self, rounds: int = 8) -> None:
        """Requests of all kinds, many at once; each customer has one session at a time."""
        others = [self.delivery, self.price, self.replace, self.dashboard]
        for number in range(rounds):
            customers = self.random.sample(list(CUSTOMERS), 3)
            those = self.random.choices(others, [2, 3, 1, 2], k=5)
            await asyncio.gather(*map(self.session, customers), *(kind() for kind in those))
            if number % 3 == 2:
                await self.cluster.advance(timedelta(minutes=1))
        await self.buy(5, ((2, 2), 999))  # of which there are fewer: refused, and low
        await self.cluster.advance(timedelta(minutes=15))
        await self.ask(Kind.RESTOCK, "stock", (2, 2), "restock", 500)
        await self.session(1)
        for seller in (1, 2, 3):
            await self.dashboard(seller)

    async def session(self, customer: int) -> None:
        """Fills a cart, and checks it out or leaves it; some submissions are sent twice, at once or later."""
        session = f"s{self.name()}"
        for key in self.random.sample(self.products, self.random.randint(1, 4)):
            voucher = self.random.choice([0, 0, 150, 100_000])
            await self.add(customer, key, self.random.randint(1, 4), voucher=voucher, session=session)
        if self.random.random() < 0.1:
            await self.ask(Kind.ABANDON, "cart", customer, "seal", session=session)
            return
        submission = request(customer, checkout_id=session)
        await asyncio.gather(*(self.checkout(submission) for _ in range(self.random.choice([1, 1, 2]))))
        if self.random.random() < 0.2:
            await self.checkout(submission)

    async def price(self) -> None:
        key = self.random.choice(PRODUCTS)
        version = self.random.choice([self.product(key).version] * 4 + ["v0"])
        await self.set_price(key, self.random.randint(5_00, 60_00), version)

    async def replace(self, key: tuple[int, int] | None = None) -> None:
        made = offer(self.random.randint(5_00, 60_00))
        await self.ask(Kind.REPLACE, "product", key or self.random.choice(PRODUCTS), "replace", made, f"v{self.name()}")

    # One by one --------------------------------------------------------------------------------------------

    def product(self, key: tuple[int, int]) -> Product:
        """As it is."""
        found: Product = self.cluster.entity(product, key)
        return found

    async def add(self, customer: int, key: tuple[int, int], quantity: int, *, voucher: int = 0, session: str) -> None:
        """Puts a product into a cart as it is shown."""
        found = self.product(key)
        bought = item(*key, quantity, version=found.version, unit_price=found.price, voucher=voucher)
        await self.ask(Kind.ADD, "cart", customer, "add_item", bought, session=session)

    async def checkout(self, submission: CustomerCheckout) -> Any:
        """Sends it."""
        name, customer = submission.checkout_id, submission.customer_id
        return await self.ask(Kind.CHECKOUT, "cart", customer, "checkout", submission, session=name)

    async def buy(self, customer: int, *lines: tuple[tuple[int, int], int]) -> Any:
        """A session with these lines, (product, quantity); the payment has ended when this returns."""
        session = f"s{self.name()}"
        for key, quantity in lines:
            await self.add(customer, key, quantity, session=session)
        result = await self.checkout(request(customer, checkout_id=session))
        await self.cluster.advance(timedelta(0))
        return result

    async def set_price(self, key: tuple[int, int], price: int, version: str) -> None:
        await self.ask(Kind.PRICE, "product", key, "set_price", price, version)

    async def delivery(self) -> None:
        await self.ask(Kind.DELIVERY, "queue", 0, "update_delivery", f"d{self.name()}")

    async def dashboard(self, seller: int = 0) -> None:
        await self.ask(Kind.DASHBOARD, "seller", seller or self.random.choice([1, 2, 3]), "dashboard")

    def mirror(self) -> list[Mirrored]:
        """What the sellers believe: the answers with the highest numbers."""
        believed: dict[tuple[int, int], tuple[int, Mirrored]] = {}
        for asked in self.asked:
            if asked.kind not in (Kind.PRICE, Kind.REPLACE) or asked.ended is not Ended.COMMITTED:
                continue
            found: Any = asked.result_as(PriceResult if asked.kind is Kind.PRICE else Product)
            if asked.key not in believed or believed[asked.key][0] < found.change:
                believed[asked.key] = (
                    found.change,
                    Mirrored(asked.key[0], asked.key[1], found.price, found.version, True),
                )
        return [mirrored for _, mirrored in believed.values()]


def _seen(found: Dashboard) -> DashboardSeen:
    """A dashboard with the sums that its client makes of the entries."""
    entries = found.entries
    amount, freight = sum(each.total_amount for each in entries), sum(each.freight_value for each in entries)
    total = sum(each.total_items for each in entries)
    orders, products = {(each.customer_id, each.order_id) for each in entries}, {each.product_id for each in entries}
    sums = (amount, freight, total - amount, amount + freight, total)
    summed = Board(found.board.seller_id, len(orders), len(products), len(entries), *sums)
    return DashboardSeen(found.board, summed, found.complete, entries)


async def run_of(
    act: Act,
    *,
    replication: Replication = Replication.TOGETHER,
    promised: Replication | None = None,
    pieces: int = 60,
    seed: int = 1,
    data_dir: Any = None,
) -> Run:
    """What is to be audited of an engine on which `act` was done. `promised`: what it is held to instead of the app's
    own promise.
    """
    app = make_app(replication)
    async with Unchecked(app, data_dir, N_SLOTS, None, 3600.0) as cluster:
        await load(cluster, EXTRA_SELLERS, pieces)
        before = state_here(cluster)
        shop = Shop(cluster, seed)
        await act(shop)
        await cluster.advance(timedelta(0))
        end = max((event.time for event in await cluster.events("reserve-stock")), default=None)
        return Run(
            before=before,
            after=state_here(cluster),
            history=await history_of(cluster),
            record=Record.of(shop.asked),
            mirror=shop.mirror(),
            terms=Terms(replication=promised or replication, rejected=settings.REJECTED, seed=settings.SEED),
            calls=calls_of(app),
            end=end,
        )


def red(run: Run) -> set[str]:
    """The criteria that do not hold."""
    return {str(violation.criterion) for violation in audit(run)}

"""A small random workload on the embedded engine, with the record that its audit needs."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from benchmarks.marketplace import charging, settings
from benchmarks.marketplace.answers import Board
from benchmarks.marketplace.app import make_app
from benchmarks.marketplace.audit.audit import audit
from benchmarks.marketplace.audit.reading import calls_of, history_of, state_here
from benchmarks.marketplace.audit.run import Run, Terms
from benchmarks.marketplace.audit.violation import Violation
from benchmarks.marketplace.record import Asked, DashboardSeen, Ended, Kind, Mirrored, Place, Record
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.services.product.rows import product
from benchmarks.marketplace.services.seller.dashboard import Dashboard
from styx import App
from styx.messages import Reply
from styx.testing import EmbeddedCluster
from tests.benchmarks.marketplace.shop import CUSTOMERS, PRODUCTS, item, load, offer, request

PLAIN = msgspec.to_builtins
EXTRA_SELLERS = 12
"""Further sellers with one product each, so that a delivery cannot serve all."""


class Shop:
    """Clients of a marketplace by chance, which record what they ask and get."""

    def __init__(self, cluster: EmbeddedCluster, seed: int) -> None:
        self.cluster = cluster
        self.random = random.Random(seed)
        self.asked: list[Asked] = []
        self.products = [*PRODUCTS, *((number, 1) for number in range(3, 3 + EXTRA_SELLERS))]
        self._names = iter(range(1, 1_000_000))

    async def ask(self, kind: Kind, operator: str, key: Any, function: str, *arguments: Any, session: str = "") -> Any:
        """A request, recorded."""
        number, sent_us = next(self._names), _now_us()
        reply = await self.cluster.request(operator, key, function, *arguments)
        result = _dashboard(reply) if kind is Kind.DASHBOARD and reply.error is None else reply.result
        error = reply.error
        self.asked.append(
            Asked(
                client=0,
                number=number,
                kind=kind,
                session=session,
                key=key,
                function=function,
                arguments=PLAIN(list(arguments)),
                sent_us=sent_us,
                ended_us=_now_us(),
                ended=Ended.COMMITTED if error is None else Ended.ABORTED,
                error="" if error is None else error.type,
                result=PLAIN(result),
                place=Place(reply.epoch, reply.phase, reply.tid),
            )
        )
        return reply.result

    async def run(self, rounds: int) -> None:
        """Rounds of requests of all kinds at once; what they lead to has ended when this returns."""
        kinds: list[Callable[[], Any]] = [self.session, self.delivery, self.price, self.replace, self.dashboard]
        for number in range(rounds):
            those = self.random.choices(kinds, [6, 2, 3, 1, 2], k=8)
            customers = self.random.sample(list(CUSTOMERS), len(CUSTOMERS))
            await asyncio.gather(
                *(kind(customers.pop()) if kind == self.session and customers else _unless(kind, self) for kind in those)
            )
            if number % 4 == 3:
                await self.cluster.advance(timedelta(minutes=1))
        await self.cluster.advance(timedelta(minutes=15))

    async def session(self, customer: int) -> None:
        """Fills a cart, and checks it out or leaves it; some submissions are sent twice, at once or later."""
        session = f"s{next(self._names)}"
        for key in self.random.sample(self.products, self.random.randint(1, 4)):
            await self.add(customer, key, session)
        if self.random.random() < 0.1:
            await self.ask(Kind.ABANDON, "cart", customer, "seal", session=session)
            return
        submission = request(customer, checkout_id=session)
        times = self.random.choice([1, 1, 2])
        await asyncio.gather(*(self.checkout(customer, submission) for _ in range(times)))
        if self.random.random() < 0.2:
            await self.checkout(customer, submission)

    async def add(self, customer: int, key: tuple[int, int], session: str) -> None:
        found = self.cluster.entity(product, key)
        quantity, voucher = self.random.randint(1, 4), self.random.choice([0, 0, 150, 100_000])
        bought = item(*key, quantity, version=found.version, unit_price=found.price, voucher=voucher)
        await self.ask(Kind.ADD, "cart", customer, "add_item", bought, session=session)

    async def checkout(self, customer: int, submission: Any) -> None:
        name = submission.checkout_id
        await self.ask(Kind.CHECKOUT, "cart", customer, "checkout", submission, session=name)

    async def delivery(self) -> None:
        await self.ask(Kind.DELIVERY, "shipment", 0, "update_delivery", f"d{next(self._names)}")

    async def price(self) -> None:
        key = self.random.choice(PRODUCTS)
        version = self.random.choice([self.cluster.entity(product, key).version] * 4 + ["v0"])
        await self.ask(Kind.PRICE, "product", key, "set_price", self.random.randint(5_00, 60_00), version)

    async def replace(self) -> None:
        key = self.random.choice(PRODUCTS)
        made = offer(self.random.randint(5_00, 60_00))
        await self.ask(Kind.REPLACE, "product", key, "replace", made, f"v{next(self._names)}")

    async def dashboard(self) -> None:
        await self.ask(Kind.DASHBOARD, "seller", self.random.choice([1, 2, 3]), "dashboard")

    def mirror(self) -> list[Mirrored]:
        """What the sellers believe, by the answers with the highest numbers."""
        believed: dict[tuple[int, int], tuple[int, Mirrored]] = {}
        for asked in self.asked:
            if asked.kind in (Kind.PRICE, Kind.REPLACE) and asked.ended is Ended.COMMITTED:
                result = asked.result
                key = (asked.key[0], asked.key[1])
                version, price, change = (
                    (result[7], result[4], result[11])
                    if asked.kind is Kind.REPLACE
                    else (result["version"], result["price"], result["change"])
                )
                if key not in believed or believed[key][0] < change:
                    believed[key] = (change, Mirrored(*key, price, version, True))
        return [mirrored for _, mirrored in believed.values()]


async def _unless(kind: Any, shop: Shop) -> None:
    """A request of another kind than a session, of which there are no more customers than carts."""
    if kind != shop.session:
        await kind()


def _now_us() -> int:
    return time.monotonic_ns() // 1000


def _dashboard(reply: Reply) -> DashboardSeen:
    found = msgspec.convert(reply.result, Dashboard)
    entries = found.entries
    amount, freight = sum(each.total_amount for each in entries), sum(each.freight_value for each in entries)
    total = sum(each.total_items for each in entries)
    summed = Board(
        found.board.seller_id,
        len({(each.customer_id, each.order_id) for each in entries}),
        len({each.product_id for each in entries}),
        len(entries),
        amount,
        freight,
        total - amount,
        amount + freight,
        total,
    )
    return DashboardSeen(found.board, summed, found.complete, entries)


async def run_of(
    act: Callable[[Shop], Any],
    *,
    replication: Replication = Replication.TOGETHER,
    pieces: int = 60,
    seed: int = 1,
    app: App | None = None,
    data_dir: Any = None,
) -> Run:
    """What is to be audited of an engine on which `act` was done. The history is not checked serially: mutations break
    rules of the application, not of the engine.
    """
    made = make_app(replication) if app is None else app
    cluster = EmbeddedCluster(made, data_dir, 16, None, 3600.0)
    async with cluster:
        await load(cluster, EXTRA_SELLERS, pieces)
        before = state_here(cluster)
        shop = Shop(cluster, seed)
        await act(shop)
        await cluster.advance(timedelta(0))
        history = await history_of(cluster)
        return Run(
            before=before,
            after=state_here(cluster),
            history=history,
            record=Record.of(shop.asked),
            mirror=shop.mirror(),
            terms=Terms(replication=replication, rejected=settings.REJECTED, seed=settings.SEED),
            calls=calls_of(made),
            end=max(told.time for told in history.of(_last_event())),
        )


def _last_event() -> Any:
    from benchmarks.marketplace import events

    return events.reserve_stock


def red(run: Run) -> list[str]:
    """The criteria that do not hold, each once."""
    return list(dict.fromkeys(str(violation.criterion) for violation in audit(run)))


def found(run: Run) -> list[Violation]:
    """All violations."""
    return audit(run)


REJECTED = charging.rejected

"""A marketplace that is only pretended: it answers a generator's requests at once, as the application would, and knows
what it was asked. It has products, and nothing else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.driver.workload import NobodyIsFree, Planned
from benchmarks.marketplace.driving.generator import MarketplaceGenerator
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.population import goods
from benchmarks.marketplace.record import Kind
from benchmarks.marketplace.values import CartItem
from styx.messages import Reply, ReplyError

SMALL = Settings(size=0.005, products_per_seller=5, orders=0, mix="a")


class Pretended:
    """`loses` says whether the reply to a request never comes; it has happened all the same."""

    def __init__(self, settings: Settings = SMALL, loses: Callable[[Planned], bool] = lambda _: False) -> None:
        self.asked: list[Planned] = []
        self.products = {
            key: (product.price, product.version, product.active) for key, product in goods.products(settings)
        }
        self.before = dict(self.products)
        """What each product was before its last change."""
        self._loses = loses
        self._orders = 0

    def reply(self, planned: Planned) -> Reply | None:
        """Does what is asked."""
        self.asked.append(planned)
        reply = self._reply(planned)
        return None if self._loses(planned) else reply

    def _reply(self, planned: Planned) -> Reply:
        key, arguments = planned.key, planned.arguments
        if planned.kind in (Kind.CHECKOUT, Kind.CHECKOUT_AGAIN):
            self._orders += 1
            return committed({"outcome": "ACCEPTED", "order_id": self._orders, "refused": [], "repeated": False})
        if planned.kind == Kind.DASHBOARD:
            return committed({"board": board(key), "entries": [], "details": [], "complete": True})
        if planned.kind == Kind.PRICE:
            return self._set_price(key, *arguments)
        if planned.kind == Kind.REPLACE:
            offer, version = arguments
            self._change(key, (offer.price, version, True))
            return committed([*"nscd", offer.price, offer.freight_value, "approved", version, True, None, None, 1])
        if planned.kind == Kind.WITHDRAW:
            price, version, active = self.products[key]
            if not active:
                return aborted("UnknownProduct")
            self._change(key, (price, version, False))
        return committed({"delivered": []} if planned.kind == Kind.DELIVERY else None)

    def _set_price(self, key: tuple[int, int], price: int, version: str) -> Reply:
        now = self.products[key]
        if not now[2]:
            return aborted("UnknownProduct")
        if now[1] != version:
            return committed({"outcome": "STALE", "version": now[1], "price": now[0], "change": 1})
        self._change(key, (price, version, True))
        return committed({"outcome": "UPDATED", "version": version, "price": price, "change": 1})

    def _change(self, key: tuple[int, int], to: tuple[int, str, bool]) -> None:
        self.before[key] = self.products[key]
        self.products[key] = to

    def knows(self, item: CartItem) -> bool:
        """Whether the item is a product as it is, or as it was before its last change."""
        seen = (item.unit_price, item.version)
        return any(seen == each[:2] for each in (self.products[key_of(item)], self.before[key_of(item)]))


class Driven:
    """A generator with `level` requests under way at the pretended marketplace; the oldest one is answered first."""

    def __init__(self, settings: Settings = SMALL, level: int = 1, shop: Pretended | None = None) -> None:
        self.shop = shop or Pretended(settings)
        self.generator = MarketplaceGenerator(settings, 0, 1, 1)
        self.under_way: deque[Planned] = deque()
        self.refused = 0
        self._level = level

    def run(self, transactions: int) -> Driven:
        """Begins so many, and ends them."""
        for _ in range(transactions):
            while len(self.under_way) >= self._level:
                self.answer_one()
            try:
                self.under_way.append(self.generator.next())
            except NobodyIsFree:
                self.refused += 1
        while self.under_way:
            self.answer_one()
        return self

    def answer_one(self) -> None:
        """Ends the request that is under way for the longest time."""
        planned = self.under_way.popleft()
        reply = self.shop.reply(planned)
        if reply is None:
            self.generator.unknown(planned)
        else:
            self.under_way.extend(self.generator.answered(planned, reply) or ())


def committed(result: Any) -> Reply:
    return Reply(msgspec.to_builtins(result), None, 1, 1, 0, "")


def aborted(kind: str) -> Reply:
    return Reply(None, ReplyError(kind, "why", "aborted"), 1, 1, 0, "")


def board(seller_id: int) -> dict[str, int]:
    names = "count_orders count_items count_lines total_amount total_freight total_incentive total_invoice total_items"
    return {"seller_id": seller_id, **dict.fromkeys(names.split(), 0)}


def key_of(item: CartItem) -> tuple[int, int]:
    return item.seller_id, item.product_id

"""S#6: each package is delivered once, and each shipment concluded once, with its last package. A delivery serves the
ten sellers with the oldest orders that wait, and of each the oldest order, whole, as they are at its place.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from benchmarks.marketplace import events
from benchmarks.marketplace.answers import DeliveryResult
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.stories import Story
from benchmarks.marketplace.audit.violation import Criterion, Violation
from benchmarks.marketplace.record import Ended, Kind, Place
from benchmarks.marketplace.services.shipment.rows import packages, waiting

SELLERS: Final = 10
"""Sellers that a delivery serves, by the benchmark's definition."""

Order = tuple[datetime, int, int]
"""(shipping date, customer, order), by which a seller's orders are older."""
Served = set[tuple[int, int, int]]
"""(seller, customer, order)."""


class Queues:
    """Each seller's orders that wait, and the first ones of all sellers, sorted."""

    def __init__(self) -> None:
        self.orders: dict[int, list[Order]] = {}
        self._firsts: list[tuple[datetime, int, int, int]] = []

    def wait(self, seller: int, order: Order) -> None:
        """Adds an order."""
        orders = self.orders.setdefault(seller, [])
        first = orders[:1]
        insort(orders, order)
        self._changed(seller, first)

    def serve(self, seller: int, customer: int, order_id: int) -> None:
        """Takes an order out, wherever it stands; it is the first one but for a fault."""
        orders = self.orders.get(seller, [])
        first = orders[:1]
        at = next((at for at, order in enumerate(orders) if order[1:] == (customer, order_id)), None)
        if at is not None:
            del orders[at]
            self._changed(seller, first)

    def oldest(self) -> list[tuple[datetime, int, int, int]]:
        """The oldest order of each of the sellers that are to be served: (shipping date, customer, order, seller)."""
        return self._firsts[:SELLERS]

    def _changed(self, seller: int, before: list[Order]) -> None:
        first = self.orders[seller][:1]
        if first != before:
            if before:
                del self._firsts[bisect_left(self._firsts, (*before[0], seller))]
            if first:
                insort(self._firsts, (*first[0], seller))


def violations(run: Run) -> Iterator[Violation]:
    """Counts what was told of each package and shipment, and replays the deliveries."""
    for key, story in run.stories.items():
        yield from _once(f"order {key}", story)
    served: dict[Place, Served] = {}
    yield from _replay(run, served)
    yield from _answers(run, served)


def _once(entity: str, story: Story) -> Iterator[Violation]:
    for package, steps in story.delivered.items():
        if len(steps) > 1:
            yield Violation(Criterion.S6, f"{entity}, package {package}", f"{len(steps)} deliveries", "one at most")
        if package not in story.packages:
            yield Violation(Criterion.S6, f"{entity}, package {package}", "a delivery", "no such package")
    undelivered = len(story.packages.keys() - story.delivered.keys())
    if len(story.concluded) > 1 or (story.concluded and undelivered):
        found = f"concluded {len(story.concluded)} times with {undelivered} packages to deliver"
        yield Violation(Criterion.S6, entity, found, "once, with its last package")
    if story.delivered and not undelivered and not story.concluded:
        yield Violation(Criterion.S6, entity, "all packages are delivered, but it is not concluded", "concluded")


def _replay(run: Run, served: dict[Place, Served]) -> Iterator[Violation]:
    queues = Queues()
    for _, row in run.before.all_rows(waiting):
        queues.wait(row.seller_id, (row.shipping_date, row.customer_id, row.order_id))
    for place, those in run.history.transactions(events.payment_confirmed, events.delivery_notification):
        delivered: dict[tuple[int, int, int], set[int]] = {}
        for event, told in those:
            value: Any = told.value
            if event is events.payment_confirmed:
                for seller in {line.seller_id for line in value.lines}:
                    queues.wait(seller, (value.date, value.buyer.customer_id, value.order_id))
            else:
                key = (value.seller_id, value.customer_id, value.order_id)
                delivered.setdefault(key, set()).add(value.package_id)
        if delivered:
            served[place] = set(delivered)
            yield from _delivery(run, place, delivered, queues)
    yield from _left(run, queues)


def _delivery(
    run: Run, place: Place, delivered: dict[tuple[int, int, int], set[int]], queues: Queues
) -> Iterator[Violation]:
    """One delivery against the queues, which then lose what it has served."""
    entity = f"delivery {tuple(place)}"
    expected = {(seller, customer, order) for _, customer, order, seller in queues.oldest()}
    if set(delivered) != expected:
        found = f"(seller, customer, order) {sorted(set(delivered) - expected)} too many, "
        found += f"{sorted(expected - set(delivered))} left out"
        yield Violation(Criterion.S6, entity, found, f"the oldest orders of {SELLERS} sellers at most")
    for (seller, customer, order), those in delivered.items():
        story = run.stories.get((customer, order))
        theirs = {number for number, line in story.packages.items() if line.seller_id == seller} if story else set()
        if those != theirs:
            found = f"packages {sorted(those)} of seller {seller}, order {(customer, order)}"
            yield Violation(Criterion.S6, entity, found, f"all of that seller's: {sorted(theirs)}")
        queues.serve(seller, customer, order)


def _left(run: Run, queues: Queues) -> Iterator[Violation]:
    """What waits in the end, by the replay, by the queues and by the packages."""
    undelivered: dict[int, set[tuple[int, int]]] = {}
    for customer, row in run.after.all_rows(packages):
        if row.delivery_date is None:
            undelivered.setdefault(row.seller_id, set()).add((customer, row.order_id))
    queued: dict[int, list[tuple[int, int]]] = {}
    for _, row in run.after.all_rows(waiting):
        queued.setdefault(row.seller_id, []).append((row.customer_id, row.order_id))
    for seller in sorted({*queues.orders, *undelivered, *queued}):
        expected = [each[1:] for each in queues.orders.get(seller, [])]
        found = queued.get(seller, [])
        if found != expected:
            yield Violation(Criterion.S6, f"queue of seller {seller}", f"orders {found}", f"{expected}, by the log")
        if set(expected) != undelivered.get(seller, set()):
            has = f"packages of orders {sorted(undelivered.get(seller, set()))} to deliver"
            yield Violation(Criterion.S6, f"queue of seller {seller}", has, f"of orders {sorted(expected)}, by the log")


def _answers(run: Run, served: dict[Place, Served]) -> Iterator[Violation]:
    for asked in run.record:
        if asked.kind is Kind.DELIVERY and asked.ended is Ended.COMMITTED and asked.place is not None:
            result = asked.result_as(DeliveryResult)
            told = {(each.seller_id, each.customer_id, each.order_id) for each in result.delivered}
            if told != served.get(asked.place, set()):
                entity = f"delivery {tuple(asked.place)}"
                expected = f"{sorted(served.get(asked.place, set()))}, by the log"
                yield Violation(Criterion.S6, entity, f"the answer {sorted(told)}", expected)

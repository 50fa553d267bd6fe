"""Anomalies of replication in small histories by hand: which changes there were, and what a checkout took of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from benchmarks.marketplace import events
from benchmarks.marketplace.audit.audit import audit
from benchmarks.marketplace.audit.criteria.replication import Anomalies, anomalies, violations
from benchmarks.marketplace.audit.history import History, Told
from benchmarks.marketplace.audit.run import Run, Terms
from benchmarks.marketplace.audit.state import State
from benchmarks.marketplace.events import ProductChanged, ReserveStock
from benchmarks.marketplace.record import Place
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.services.product.rows import Product, product
from benchmarks.marketplace.values import Buyer, PaymentType, RequestedItem

THEN = datetime(2026, 1, 1, tzinfo=UTC)
X, Y, OTHER = (1, 1), (1, 2), (2, 1)
"""Two products of one seller, and one of another; each is loaded at a price of 0."""


def run(*steps: tuple[str, dict[tuple[int, int], int]], version: str = "v") -> Run:
    """A history of steps: ("set", prices), a change for each of them, and ("see", prices), a checkout that took them.
    `version` is that of the items.
    """
    before, history = State(), History()
    for key in (X, Y, OTHER):
        before.put_value(product, key, Product("", "", "", "", 0, 0, "", "v", True, THEN, THEN))
    numbers = dict.fromkeys((X, Y, OTHER), 0)
    epoch = 0
    for what, prices in steps:
        if what == "see":
            epoch += 1
            items = [RequestedItem(*key, "", price, 0, 1, 0, version) for key, price in prices.items()]
            history.add(events.reserve_stock, _told(epoch, ReserveStock(THEN, _buyer(epoch), items)))
            continue
        for key, price in prices.items():
            epoch += 1
            numbers[key] += 1
            changed = ProductChanged(*key, price, "v", True, numbers[key])
            history.add(events.product_changed, _told(epoch, changed))
    return Run(before=before, after=State(), history=history)


def _told(epoch: int, value: object) -> Told[object]:
    return Told(Place(epoch, 1, epoch), f"{epoch:08}", THEN, 0, value)


def _buyer(number: int) -> Buyer:
    texts: dict[str, Any] = dict.fromkeys(Buyer.__struct_fields__, "")
    known = {"customer_id": 1, "checkout_id": f"c{number}", "payment_type": PaymentType.BOLETO, "installments": 1}
    return Buyer(**{**texts, **known})


def test_what_is_seen_at_once_is_no_anomaly() -> None:
    found = anomalies(run(("set", {X: 1}), ("set", {Y: 2}), ("see", {X: 1, Y: 2}), ("see", {OTHER: 0})))
    assert found == Anomalies(lines=3, carts=2, stale=0, back=0, torn=0)


def test_an_older_beginning_of_the_sellers_changes_is_stale_and_not_torn() -> None:
    """x1, x2, y1, y2: a cart that has seen x1 and y0 has seen a beginning."""
    found = anomalies(run(("set", {X: 1}), ("set", {X: 2}), ("set", {Y: 11}), ("set", {Y: 12}), ("see", {X: 1, Y: 0})))
    assert found == Anomalies(lines=2, carts=1, stale=2, back=0, torn=0)


@pytest.mark.parametrize("seen", [{X: 1, Y: 11}, {X: 1, Y: 12}, {X: 0, Y: 11}, {X: 0, Y: 12}])
def test_a_later_change_without_an_earlier_one_is_torn(seen: dict[tuple[int, int], int]) -> None:
    """x1, x2, y1, y2: whoever has seen y1 must have seen x2."""
    found = anomalies(run(("set", {X: 1}), ("set", {X: 2}), ("set", {Y: 11}), ("set", {Y: 12}), ("see", seen)))
    assert (found.torn, found.back) == (1, 0)


def test_products_of_different_sellers_are_not_compared() -> None:
    found = anomalies(run(("set", {X: 1}), ("set", {OTHER: 11}), ("see", {X: 0, OTHER: 11})))
    assert (found.torn, found.stale) == (0, 1)


def test_one_product_never_goes_back() -> None:
    steps = (("set", {X: 1}), ("see", {X: 1}), ("set", {X: 2}), ("see", {X: 1}), ("see", {X: 2}), ("see", {X: 1}))
    found = anomalies(run(*steps))
    assert (found.back, found.stale) == (1, 2)


def test_a_price_that_comes_again_can_be_either_change() -> None:
    """1, 2, 1: who sees 1 may have seen the first or the last one, so who then sees 2 is not blamed."""
    found = anomalies(run(("set", {X: 1}), ("set", {X: 2}), ("set", {X: 1}), ("see", {X: 1}), ("see", {X: 2})))
    assert (found.back, found.stale) == (0, 1)


def test_what_no_change_has_made_is_an_anomaly_of_all_kinds() -> None:
    found = anomalies(run(("set", {X: 1}), ("see", {X: 7, Y: 0})))
    assert (found.stale, found.back, found.torn) == (1, 1, 1)


def test_a_copy_of_another_version_says_nothing_of_the_price() -> None:
    found = anomalies(run(("set", {X: 1}), ("see", {X: 7, Y: 9}), version="older"))
    assert (found.stale, found.back, found.torn) == (0, 0, 0)


@pytest.mark.parametrize(
    ("replication", "expected"),
    [
        (Replication.TOGETHER, {"TOGETHER", "R2", "R3"}),
        (Replication.SELLER, {"R2", "R3"}),
        (Replication.OBJECT, {"R2"}),
        (Replication.EVENTUAL, set()),
    ],
)
def test_each_promise_forbids_its_anomalies(replication: Replication, expected: set[str]) -> None:
    steps = (("set", {X: 1}), ("see", {X: 1}), ("set", {Y: 11}), ("see", {X: 0, Y: 11}))
    found = replace(run(*steps), terms=Terms(replication=replication))
    assert {str(violation.criterion) for violation in violations(found)} == expected
    assert "c4" in next((violation.entity for violation in violations(found)), "c4")
    assert msgspec.msgpack.encode([list(violation) for violation in audit(found)])

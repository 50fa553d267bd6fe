"""The driver's audit: a run that was as it was told passes, and each thing that was told wrong is found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from benchmarks.driver.loading import load
from benchmarks.marketplace.app import make_app
from benchmarks.marketplace.driving import auditing
from benchmarks.marketplace.driving.auditing import audited
from benchmarks.marketplace.driving.generator import MarketplaceGenerator
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.driving.witness import record_of
from benchmarks.marketplace.events import transaction_mark
from benchmarks.marketplace.population.whole import initial
from benchmarks.marketplace.record import Asked, Charge, Kind, pack
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.services.order.rows import orders
from benchmarks.marketplace.services.payment.rows import payments
from styx.testing import EmbeddedCluster, embedded_cluster

pytestmark = pytest.mark.anyio

SETTINGS = Settings(size=0.001, products_per_seller=5, orders=1, mix="b", resent=0.3)
TRANSACTIONS = 60


class Ran:
    """A marketplace after a run, with what its client has seen."""

    def __init__(self, cluster: EmbeddedCluster, witness: dict[str, Any], marks: list[list[Any]]) -> None:
        self.cluster = cluster
        self.witness = witness
        self.marks = marks

    @property
    def asked(self) -> list[Asked]:
        return [*record_of([self.witness])]

    def first(self, kind: Kind) -> Asked:
        return next(each for each in self.asked if each.kind is kind)

    def tell(self, number: int, **otherwise: Any) -> None:
        """The client has seen something else of one request."""
        told = [msgspec.structs.replace(each, **otherwise) if each.number == number else each for each in self.asked]
        self.witness = self.witness | {"chunks": [pack(told)]}

    async def violations(self) -> list[str]:
        witnesses = [self.witness, {"marks": self.marks}]
        return (await audited(self.cluster, witnesses, "")).violations


@pytest.fixture
async def ran() -> AsyncIterator[Ran]:
    app = make_app(Replication.TOGETHER)
    async with embedded_cluster(app) as cluster:
        for loading in initial(app, SETTINGS):
            await load(cluster, loading)
        generator = MarketplaceGenerator(SETTINGS, 0, 1, 1)
        for _ in range(TRANSACTIONS):
            left = [generator.next()]
            while left:
                planned = left.pop(0)
                reply = await cluster.request(planned.operator, planned.key, planned.function, *planned.arguments)
                left += generator.answered(planned, reply) or []
        await cluster.advance(timedelta(0))
        marks = [
            [each.value.tid, each.value.status, 1] for each in await cluster.events(transaction_mark, follow=False)
        ]
        yield Ran(cluster, generator.witness(), marks)


async def test_a_run_passes_with_as_many_orders_as_checkouts(ran: Ran) -> None:
    audit = await audited(ran.cluster, [ran.witness, {"marks": ran.marks}], "")
    assert audit.violations == []
    assert audit.checked[1].startswith("7 orders that were told"), audit.checked
    again = [each.result for each in ran.asked if each.kind is Kind.CHECKOUT_AGAIN]
    assert again
    assert all(result["repeated"] for result in again)


async def test_an_order_that_was_told_and_is_not_there(ran: Ran) -> None:
    checkout = ran.first(Kind.CHECKOUT)
    ran.tell(checkout.number, result=checkout.result | {"order_id": 99})
    assert any("order (" in text and "UnknownOrder" in text for text in await ran.violations())


async def test_an_order_that_was_told_to_two(ran: Ran) -> None:
    checkout = ran.first(Kind.CHECKOUT)
    ran.tell(checkout.number, session="another-session")
    found = " ".join(await ran.violations())
    assert "was told to another-session" in found


async def test_two_orders_of_one_submission(ran: Ran) -> None:
    again = ran.first(Kind.CHECKOUT_AGAIN)
    ran.tell(again.number, result=again.result | {"order_id": again.result["order_id"] + 1})
    assert any("has the orders" in text for text in await ran.violations())


async def test_a_change_that_was_acknowledged_and_is_lost(ran: Ran) -> None:
    changed = ran.witness["mirror"]
    ran.witness = ran.witness | {"mirror": [[*changed[0][:2], changed[0][2] + 1, *changed[0][3:]], *changed[1:]]}
    (text,) = await ran.violations()
    assert "the last acknowledged change made it" in text


async def test_a_change_without_a_reply_is_no_violation(ran: Ran) -> None:
    changed = ran.witness["mirror"]
    ran.witness = ran.witness | {"mirror": [[*changed[0][:2], 1, *changed[0][3:5], False], *changed[1:]]}
    assert await ran.violations() == []


async def test_a_mark_that_says_the_opposite(ran: Ran) -> None:
    ran.marks[0][1] = "ABORT"
    (text,) = await ran.violations()
    assert "its mark says ABORT" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda charges: charges.pop(0), "the provider was not asked about"),
        (
            lambda charges: charges.append(msgspec.structs.replace(charges.pop(0), cents=1)),
            "the provider has approved 1",
        ),
        (lambda charges: charges.append(msgspec.structs.replace(charges.pop(0), approved=False)), "has rejected"),
        (lambda charges: charges.append(msgspec.structs.replace(charges.pop(0), differing=2)), "asked 2 times"),
    ],
)
async def test_the_book_says_otherwise(
    change: Callable[[list[Charge]], object], message: str, ran: Ran, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {(each.key, each.result["order_id"]) for each in ran.asked if each.kind is Kind.CHECKOUT}
    charges = []
    for customer, order_id in sorted(told):
        (row,) = [each for each in ran.cluster.rows(orders, customer) if each.order_id == order_id]
        charges.append(
            Charge(
                invoice_number=row.invoice_number,
                customer_id=customer,
                cents=row.total_invoice,
                payment_type="BOLETO",
                approved=True,
                at=datetime.now(UTC),
                asked=1,
            )
        )
    monkeypatch.setattr(auditing, "read_book", lambda _: charges)
    assert (await audited(ran.cluster, [ran.witness, {"marks": ran.marks}], "somewhere")).violations == []
    change(charges)
    (text,) = (await audited(ran.cluster, [ran.witness, {"marks": ran.marks}], "somewhere")).violations
    assert message in text


async def test_a_payment_of_another_sum(ran: Ran) -> None:
    checkout = ran.first(Kind.CHECKOUT)
    (row,) = [
        each
        for each in ran.cluster.rows(payments, checkout.key)
        if each.order_id == checkout.result["order_id"] and each.type != "VOUCHER"
    ]
    row.value += 1
    await ran.cluster.load_rows(payments, [(checkout.key, row)], replace=True)
    (text,) = await ran.violations()
    assert "were paid for" in text


def test_many_findings_are_counted() -> None:
    findings = auditing.Findings()
    for number in range(25):
        findings.add(f"{number}")
    assert findings.texts()[-2:] == ["19", "and 5 more"]

"""The application with one rule broken, run on the embedded engine: the audit is red by the criterion of that rule, and
it is green for the application as it is.

Each mutation replaces one function. Several criteria may hold the rule that it breaks: `red_by` names them. No other
one is red but those of `may_be`, which depend on what happens at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest

from benchmarks.marketplace import settings
from benchmarks.marketplace.audit.audit import audit, checked
from benchmarks.marketplace.audit.violation import Criterion
from benchmarks.marketplace.services.cart.replica import Replication
from benchmarks.marketplace.services.order import following as order_following
from benchmarks.marketplace.services.payment import paying
from tests.benchmarks.marketplace.audit import acts, broken
from tests.benchmarks.marketplace.audit.workload import Act, red, run_of

pytestmark = pytest.mark.anyio
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def some_payments_are_rejected(monkeypatch: Patch) -> None:
    monkeypatch.setattr(settings, "REJECTED", 20.0)


@pytest.mark.parametrize("replication", list(Replication))
async def test_the_application_as_it_is_is_green(replication: Replication) -> None:
    run = await run_of(acts.mix, replication=replication, pieces=25)
    assert audit(run) == []
    assert len(run.stories) > 10
    assert any("0 saw no beginning" in text for text in checked(run))


@pytest.mark.parametrize(("setting", "chosen"), [("PAYMENT", "together"), ("REPRICE", "carts")])
async def test_the_application_with_another_setting_is_green(setting: str, chosen: str, monkeypatch: Patch) -> None:
    monkeypatch.setattr(settings, setting, chosen)
    for replication in (Replication.TOGETHER, Replication.EVENTUAL):
        assert audit(await run_of(acts.mix, replication=replication, pieces=12, seed=3)) == []


class Mutation(NamedTuple):
    """What is broken, what must be red by it and what else may be, and what brings it out."""

    apply: Callable[[Patch], None]
    red_by: set[str]
    act: Act = acts.mix
    options: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it
    may_be: frozenset[str] = frozenset()


OBJECT_LIKE: Final = broken.copies_lag(lambda event: 9 if event.change % 3 == 1 else 0.5, guarded=False)
UNEVEN: Final = broken.copies_lag(lambda event: 60 if event.product_id == 1 else 0.1, guarded=True)
BEHIND: Final = broken.copies_lag(lambda event: 10, guarded=True)
EVENTUAL: Final[dict[str, Any]] = {"replication": Replication.EVENTUAL}

MUTATIONS: Final = {
    "ATOM: skip E6 to Customer": Mutation(broken.a_payment_is_not_told_to_the_customer, {"ATOM", "S#4", "DEL"}),
    "COMM: Cart reads Product": Mutation(broken.a_cart_reads_products, {"COMM"}),
    "COMM: behind the graph": Mutation(broken.a_cart_reads_products_behind_the_graph, {"COMM", "ERR"}),
    "S#1: drop E1": Mutation(broken.a_replacement_is_not_told_to_the_stock, {"S#1", "S#7"}),
    "S#1: delay E1": Mutation(broken.a_replacement_comes_to_the_stock_later, {"S#1", "S#7"}, acts.replaced),
    "S#2: drop the id check": Mutation(broken.a_submission_is_not_known_by_its_id, {"S#2"}),
    "S#2: repeated as new": Mutation(broken.a_repeated_submission_is_told_as_a_new_one, {"S#2"}),
    "S#2: an item in two orders": Mutation(broken.a_cart_is_not_emptied, {"CART"}),
    "S#3: no bound": Mutation(
        broken.more_is_reserved_than_there_is,
        {"S#3", "S#7", "C.3"},
        acts.mix,
        {"pieces": 12},
        frozenset({"ATOM", "ERR"}),
    ),
    "S#3: confirm twice": Mutation(
        broken.a_reservation_is_confirmed_twice, {"S#3", "S#7", "DEL"}, acts.at_once, {}, frozenset({"ATOM", "C.3"})
    ),
    "S#3: forget to release": Mutation(
        broken.a_failed_payment_gives_nothing_back, {"S#3", "S#7"}, acts.mix, {}, frozenset({"C.3"})
    ),
    "S#4: read, then write": Mutation(
        broken.a_count_is_read_before_it_is_written, {"S#4", "ATOM", "DEL"}, acts.two_payments_at_once
    ),
    "S#4: duplicate E9": Mutation(broken.a_package_is_counted_twice, {"S#4", "ATOM", "DEL"}),
    "S#5: stale price applied": Mutation(broken.a_stale_price_is_applied, {"S#5"}, acts.replaced),
    "S#5: two read the same row": Mutation(broken.a_price_is_written_to_what_was_read_before, {"S#5", "S#1"}),
    "S#6: ten shipments": Mutation(broken.a_delivery_takes_ten_shipments, {"S#6"}),
    "S#6: string ordering": Mutation(broken.a_delivery_sorts_by_text, {"S#6"}, acts.deliveries),
    "S#6: delivered again": Mutation(broken.a_delivered_package_is_delivered_again, {"S#6", "DEL", "ORD", "ATOM"}),
    "S#7: E7 outside": Mutation(
        broken.a_failed_payment_gives_back_later, {"S#7"}, acts.the_last_pieces, {"pieces": 3}, frozenset({"C.3"})
    ),
    "ORD: end before E9": Mutation(broken.a_shipment_ends_before_its_last_package, {"ORD", "LOG-c"}),
    "DEL: drop a message": Mutation(broken.a_refusal_is_not_told_to_the_customer, {"DEL", "S#4"}),
    "R1: drop E0": Mutation(broken.a_price_is_not_told_to_the_copy, {"R1", "TOGETHER"}, acts.prices_race),
    "R2: reorder": Mutation(OBJECT_LIKE, {"R2", "R1"}, acts.prices_race, {**EVENTUAL, "promised": Replication.OBJECT}),
    "R3: streams apart": Mutation(UNEVEN, {"R3"}, acts.prices_race, {**EVENTUAL, "promised": Replication.SELLER}),
    "TOGETHER: copies lag": Mutation(
        BEHIND, {"TOGETHER"}, acts.prices_race, {**EVENTUAL, "promised": Replication.TOGETHER}
    ),
    "SNAP: another moment": Mutation(broken.a_board_is_of_another_moment, {"SNAP"}),
    "LOG-a: not on failure": Mutation(
        broken.not_archived(lambda value: value.order.payment_date is None, order_following),
        {"LOG-a"},
    ),
    "LOG-b: last seller": Mutation(broken.only_the_last_seller_hears_of_the_end, {"LOG-b", "ATOM", "SNAP"}),
    "LOG-c: before the end": Mutation(broken.a_shipment_is_archived_before_its_last_package, {"LOG-c"}),
    "LOG-d: on success only": Mutation(
        broken.not_archived(lambda value: value.payments[0].status != "succeeded", paying), {"LOG-d"}
    ),
    "PSP: not listened to": Mutation(broken.the_provider_is_not_listened_to, {"PSP"}),
    "MONEY: freight by piece": Mutation(broken.freight_is_paid_for_each_piece, {"MONEY"}),
    "MONEY: uncapped voucher": Mutation(broken.a_voucher_pays_more_than_its_line, {"MONEY", "SNAP"}),
    "C.2: retries": Mutation(broken.a_retry_does_not_count, {"C.2"}, acts.retries),
    "C.3: level": Mutation(broken.low_stock_counts_what_is_reserved, {"C.3"}, acts.mix, {"pieces": 12}),
    "ERR: an error nobody declares": Mutation(broken.a_delivery_fails, {"ERR"}),
    "CART: the rise is paid": Mutation(broken.a_price_that_rose_is_paid, {"CART"}, acts.prices_race),
}


@pytest.mark.parametrize("name", MUTATIONS)
async def test_a_broken_rule_is_red(name: str, monkeypatch: Patch) -> None:
    mutation = MUTATIONS[name]
    mutation.apply(monkeypatch)
    run = await run_of(mutation.act, **{"pieces": 25, **mutation.options})
    found = red(run)
    assert mutation.red_by <= found <= mutation.red_by | mutation.may_be, [str(each)[:300] for each in audit(run)[:20]]


def test_every_criterion_has_a_broken_rule() -> None:
    found = {criterion for mutation in MUTATIONS.values() for criterion in mutation.red_by}
    assert found | {"BAL"} == set(Criterion)  # BAL is about the driver: a fault is planted in its mirror


@pytest.mark.parametrize(
    "act",
    [
        acts.prices_race,
        acts.replaced,
        acts.at_once,
        acts.the_last_pieces,
        acts.retries,
        acts.two_payments_at_once,
        acts.deliveries,
    ],
)
async def test_what_brings_them_out_is_green_by_itself(act: Act) -> None:
    for replication in (Replication.TOGETHER, Replication.EVENTUAL):
        run = await run_of(act, replication=replication, pieces=25)
        assert audit(run) == []


async def test_a_lagging_copy_is_no_violation_of_an_eventual_one(monkeypatch: Patch) -> None:
    UNEVEN(monkeypatch)
    run = await run_of(acts.prices_race, replication=Replication.EVENTUAL)
    assert audit(run) == []
    assert red(replace(run, terms=replace(run.terms, replication=Replication.SELLER))) == {"R3"}

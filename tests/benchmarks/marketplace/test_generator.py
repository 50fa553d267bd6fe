"""The load: shares as planned, sessions that never meet, carts of what was acknowledged, one change of a product at a
time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.workload import NobodyIsFree, Planned
from benchmarks.marketplace.driving.generator import MarketplaceGenerator
from benchmarks.marketplace.driving.mirror import PRICE_MAX
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.driving.witness import record_of
from benchmarks.marketplace.population import goods
from benchmarks.marketplace.record import Asked, Ended, Kind
from benchmarks.marketplace.values import CartItem, CustomerCheckout
from tests.benchmarks.marketplace.answering import SMALL, Driven, Pretended, aborted, board, committed, key_of


def settings(mix: str = "a", **given: Any) -> Settings:
    values: dict[str, Any] = {"size": 0.005, "products_per_seller": 5, "orders": 0, "mix": mix}
    return Settings(**values | given)


def own_mix(folder: Path, text: str, **given: Any) -> Settings:
    file = folder / "own.toml"
    file.write_text(f'title = "own"\n{text}')
    return settings(str(file), **given)


def record(driven: Driven) -> list[Asked]:
    return [*record_of([driven.generator.witness()])]


def items(driven: Driven) -> list[CartItem]:
    return [planned.arguments[0] for planned in driven.shop.asked if planned.kind == Kind.ADD]


@pytest.mark.parametrize("mix", ["a", "b", "c", "vmodb", "checkout-only"])
def test_a_block_has_the_planned_shares_exactly(mix: str) -> None:
    driven = Driven(settings(mix)).run(400)
    counted = Counter(planned.kind for planned in driven.shop.asked if not planned.step)
    assert counted == {kind: share * 400 for kind, share in settings(mix).mixed.planned.items()}


def test_a_session_fills_a_cart_and_checks_it_out() -> None:
    driven = Driven(settings("checkout-only")).run(200)
    sessions: dict[str, list[Asked]] = defaultdict(list)
    for asked in record(driven):
        sessions[asked.session].append(asked)
    assert len(sessions) == 200
    sizes = Counter[int]()
    for session, requests in sessions.items():
        *adds, checkout = requests
        assert {add.kind for add in adds} == {Kind.ADD}
        assert checkout.kind is Kind.CHECKOUT
        submission = checkout.argument_as(0, CustomerCheckout)
        assert submission.checkout_id == session
        assert {submission.customer_id} == {each.key for each in requests}
        lines = [add.argument_as(0, CartItem) for add in adds]
        assert len({key_of(line) for line in lines}) == len(lines)
        assert len({line.seller_id for line in lines}) == 1, "this mix has one seller in a cart"
        sizes[len(lines)] += 1
    assert {*sizes} == {1, 2, 3, 4, 5}, "a seller has five products, so no cart has more"


def test_quantities_vouchers_and_payments_are_as_the_mix_says() -> None:
    driven = Driven(settings("a", size=0.05)).run(800)
    lines = items(driven)
    assert {line.quantity for line in lines} == {1, 2, 3, 4, 5}
    with_voucher = [line for line in lines if line.voucher]
    assert len(with_voucher) == pytest.approx(0.05 * len(lines), abs=1)
    assert all(line.voucher <= line.unit_price // 10 or line.voucher == 1 for line in with_voucher)
    paid = [planned.arguments[0] for planned in driven.shop.asked if planned.kind == Kind.CHECKOUT]
    kinds = Counter(each.payment_type for each in paid)
    assert len(kinds) == 3
    assert min(kinds.values()) > len(paid) / 5
    assert {each.installments for each in paid if each.payment_type != "CREDIT_CARD"} == {1}
    assert {each.installments for each in paid if each.payment_type == "CREDIT_CARD"} == {*range(1, 11)}


def test_no_customer_has_two_sessions_at_once() -> None:
    driven = Driven(settings("checkout-only"), level=20)
    open_one: dict[int, Any] = {}
    seen: list[tuple[int, str]] = []
    reply = driven.shop.reply

    def watched(planned: Planned) -> Any:
        session = planned.note.session
        assert open_one.setdefault(planned.key, session) is session
        if planned.kind == Kind.CHECKOUT:
            del open_one[planned.key]
        seen.append((planned.key, planned.kind))
        return reply(planned)

    driven.shop.reply = watched  # type: ignore[method-assign]
    driven.run(500)
    assert len({customer for customer, _ in seen}) == 50, "each of them had a turn"


def test_with_every_customer_busy_nobody_is_free() -> None:
    generator = MarketplaceGenerator(settings("checkout-only"), 0, 1, 1)
    first = [generator.next() for _ in range(50)]
    assert sorted(planned.key for planned in first) == [*range(1, 51)]
    with pytest.raises(NobodyIsFree):
        generator.next()
    generator.unknown(first[7])
    assert generator.next().key == first[7].key


def test_other_kinds_go_on_while_every_customer_is_busy() -> None:
    generator = MarketplaceGenerator(settings("a"), 0, 1, 1)
    kinds = Counter(generator.next().kind for _ in range(200 - 60 + 50))
    assert kinds[Kind.ADD] == 50
    assert kinds[Kind.DELIVERY] == 120


def test_clients_have_customers_of_their_own() -> None:
    each = [MarketplaceGenerator(settings("checkout-only"), client, 3, 1) for client in range(3)]
    theirs = [{generator.next().key for _ in range(16)} for generator in each]
    assert not theirs[0] & theirs[1] | theirs[1] & theirs[2] | theirs[0] & theirs[2]


def test_the_same_seed_asks_the_same() -> None:
    first, second = Driven(settings("b")).run(200), Driven(settings("b")).run(200)
    assert [planned[1:5] for planned in first.shop.asked] == [planned[1:5] for planned in second.shop.asked]
    other = Driven(settings("b"))
    other.generator = MarketplaceGenerator(settings("b"), 0, 1, 2)
    assert [planned[1:5] for planned in other.run(200).shop.asked] != [planned[1:5] for planned in first.shop.asked]


@pytest.mark.parametrize("level", [1, 12])
def test_a_cart_has_what_was_acknowledged(level: int) -> None:
    driven = Driven(settings("b"), level)
    begun: dict[int, CartItem] = {}
    reply = driven.shop.reply
    unknown = 0

    def watched(planned: Planned) -> Any:
        nonlocal unknown
        if planned.kind == Kind.ADD:
            unknown += not driven.shop.knows(planned.arguments[0])
            begun[planned.note.sent.number] = planned.arguments[0]
        return reply(planned)

    driven.shop.reply = watched  # type: ignore[method-assign]
    driven.run(800)
    assert len(begun) > 200
    # An item was sent before it came: meanwhile the product may have changed, at one request at a time never twice.
    assert unknown == 0 if level == 1 else unknown < len(begun) / 10


def test_changes_of_a_product_come_one_after_the_other_and_none_is_stale() -> None:
    driven = Driven(settings("b", product_zipf=1.2, seller_zipf=1.2), level=15).run(1_000)
    changes: dict[Any, list[Asked]] = defaultdict(list)
    for asked in record(driven):
        if asked.kind in (Kind.PRICE, Kind.REPLACE):
            changes[tuple(asked.key)].append(asked)
            assert asked.kind is Kind.REPLACE or asked.result["outcome"] == "UPDATED"
    for each in changes.values():
        assert all(before.number < after.number for before, after in pairwise(each))
        assert all(before.ended_us <= after.sent_us for before, after in pairwise(each))
    assert max(map(len, changes.values())) > 10


def test_prices_rise_by_some_percent_and_come_back_from_the_top(tmp_path: Path) -> None:
    driven = Driven(own_mix(tmp_path, "[shares]\nprice = 1", size=0.0005)).run(600)
    prices = {key: [price] for key, (price, _, _) in Pretended(settings(size=0.0005)).products.items()}
    for each in record(driven):
        prices[tuple(each.key)].append(each.arguments[0])
    steps = [pair for each in prices.values() for pair in pairwise(each)]
    rises = [after / before for before, after in steps if after > before]
    falls = [(before, after) for before, after in steps if after <= before]
    assert all(1.01 <= rise <= 1.1 + 0.01 for rise in rises)
    assert falls
    assert all(before * 1.1 >= PRICE_MAX > goods.PRICES[1] >= after for before, after in falls)


def test_an_unknown_change_is_not_taken_over_and_heals() -> None:
    lost = Counter[str]()

    def loses(planned: Planned) -> bool:
        lost[planned.kind] += planned.kind in (Kind.PRICE, Kind.REPLACE) and planned.note.sent.number % 5 == 0
        return planned.kind in (Kind.PRICE, Kind.REPLACE) and planned.note.sent.number % 5 == 0

    shop = Pretended(settings("b"), loses)
    driven = Driven(settings("b"), shop=shop).run(1_000)
    assert lost[Kind.PRICE] > 30 < lost[Kind.REPLACE]
    mirror = {(each.seller_id, each.product_id): each for each in record_of([driven.generator.witness()]).mirror}
    for key, (price, version, _) in shop.products.items():
        known = mirror.get(key)
        if known is not None and known.certain:
            assert (known.price, known.version) == (price, version)
    stale = [each for each in record(driven) if each.kind is Kind.PRICE and each.result is not None]
    assert any(each.result["outcome"] == "STALE" for each in stale)


def test_withdrawn_products_are_not_priced_and_come_back(tmp_path: Path) -> None:
    mixed = own_mix(tmp_path, "[shares]\nwithdraw = 10\nreplace = 20\nprice = 60\nrestock = 10")
    driven = Driven(mixed).run(600)
    assert {each.ended for each in record(driven)} == {Ended.COMMITTED}
    kinds = Counter(each.kind for each in record(driven))
    assert {*kinds} == {Kind.WITHDRAW, Kind.REPLACE, Kind.PRICE, Kind.RESTOCK}


def test_a_product_withdrawn_by_a_lost_request_is_known_after_the_next_answer(tmp_path: Path) -> None:
    mixed = own_mix(tmp_path, "[shares]\nwithdraw = 10\nprice = 50\nreplace = 5")
    shop = Pretended(mixed, lambda planned: planned.kind == Kind.WITHDRAW)
    driven = Driven(mixed, shop=shop).run(650)
    refused = [tuple(each.key) for each in record(driven) if each.error == "UnknownProduct"]
    assert refused
    assert max(Counter(refused).values()) <= 3, "once for each time that it is withdrawn"


def test_carts_that_are_abandoned_are_sealed_and_their_customer_is_free_again(tmp_path: Path) -> None:
    driven = Driven(settings("checkout-only", abandoned=0.25)).run(400)
    counted = Counter(each.kind for each in record(driven))
    assert (counted[Kind.CHECKOUT], counted[Kind.ABANDON]) == (300, 100)
    assert all(planned.step for planned in driven.shop.asked if planned.kind == Kind.ABANDON)


def test_a_session_that_broke_frees_its_customer_whose_next_cart_is_emptied_first() -> None:
    generator = MarketplaceGenerator(settings("checkout-only"), 0, 1, 1)
    first = generator.next()
    assert generator.answered(first, aborted("CartClosed")) is None
    others = [generator.next() for _ in range(50)]
    sealed = others[-1]
    assert (sealed.key, sealed.kind, sealed.function) == (first.key, Kind.ABANDON, "seal")
    (add,) = generator.answered(sealed, committed(3)) or []
    assert add.kind == Kind.ADD
    assert {planned.kind for planned in others[:-1]} == {Kind.ADD}


def test_a_checkout_that_is_sent_twice_is_sent_at_once_and_counts_once() -> None:
    driven = Driven(settings("checkout-only", resent=0.5)).run(100)
    asked = record(driven)
    counted = Counter(each.kind for each in asked)
    assert (counted[Kind.CHECKOUT], counted[Kind.CHECKOUT_AGAIN]) == (100, 50)
    again = [each for each in asked if each.kind is Kind.CHECKOUT_AGAIN]
    first = {each.session: each for each in asked if each.kind is Kind.CHECKOUT}
    assert all(each.arguments == first[each.session].arguments for each in again)
    assert all(each.sent_us <= first[each.session].ended_us for each in again)
    with_steps = Counter(planned.step for planned in driven.shop.asked if "checkout" in planned.kind)
    assert with_steps == {False: 100, True: 50}


def test_a_dashboard_is_recorded_with_the_sums_of_its_entries_and_some_with_all() -> None:
    mixed = settings("c", dashboards_kept=0.5)
    generator = MarketplaceGenerator(mixed, 0, 1, 1)
    asked = 0
    entries = [[7, 1, 2, "7|1", 1, "tea", None, 5_00, 2, 10_00, 9_00, 1_00, 50, 9_50, None, None, "INVOICED", None]]
    while asked < 10:
        planned = generator.next()
        if planned.kind == Kind.DASHBOARD:
            asked += 1
            shown = {"board": board(planned.key), "entries": entries * 2, "details": [], "complete": True}
            generator.answered(planned, committed(shown))
        else:
            generator.unknown(planned)
    seen = [each.result for each in record_of([generator.witness()]) if each.kind is Kind.DASHBOARD]
    assert len(seen) == 10
    assert all(shown[1]["count_orders"] == 1 and shown[1]["count_lines"] == 2 for shown in seen)
    assert all(shown[1]["total_items"] == 20_00 and shown[1]["total_invoice"] == 19_00 for shown in seen)
    assert sum(shown[3] is not None for shown in seen) == 5


def test_popular_sellers_are_asked_for_more_often() -> None:
    even = Driven(settings("a", size=0.02)).run(1_000)
    skewed = Driven(settings("a", size=0.02, seller_zipf=1.2)).run(1_000)
    shares = [Counter(line.seller_id for line in items(each))[1] / len(items(each)) for each in (even, skewed)]
    assert shares[0] < 0.06 < 0.2 < shares[1]


def test_a_product_has_its_name_freight_and_first_price() -> None:
    line = items(Driven(settings("checkout-only")).run(1))[0]
    number = goods.number_of(SMALL, key_of(line))
    assert line.product_name == goods.name_of(number)
    assert line.unit_price == goods.prices(SMALL)[number]
    assert line.freight_value == goods.freights(SMALL)[number]

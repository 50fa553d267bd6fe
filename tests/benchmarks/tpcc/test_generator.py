"""Requests are what the options ask for: the mix, the shares, the ranges, the same ones for the same seed."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

from benchmarks.driver.workload import Planned
from benchmarks.tpcc.generator import BLOCK
from benchmarks.tpcc.mixes import MIXES
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.text import last_name
from benchmarks.tpcc.workload import TpcC
from styx.embedded_engine.options import N_SLOTS_DEFAULT

COUNT = 20 * BLOCK


@cache
def planned(client: int = 0, clients: int = 1, seed: int = 1, **options: Any) -> list[Planned]:
    generator = TpcC(Settings(**options)).generator(client, clients, seed)
    return [generator.next() for _ in range(COUNT)]


@pytest.mark.parametrize("mix", MIXES)
def test_every_hundred_requests_have_the_mix_exactly(mix: str) -> None:
    requests = planned(mix=mix)
    expected = {kind: round(share * BLOCK) for kind, share in MIXES[mix].items()}
    for first in range(0, COUNT, BLOCK):
        assert Counter(request.kind for request in requests[first : first + BLOCK]) == expected


def test_the_standards_mix_is_in_no_order() -> None:
    kinds = [request.kind for request in planned()]
    assert len({tuple(kinds[first : first + BLOCK]) for first in range(0, COUNT, BLOCK)}) == COUNT // BLOCK


@pytest.mark.parametrize("kind", ["new-order", "payment", "order-status", "delivery", "stock-level"])
def test_terminals_are_of_all_warehouses_and_districts_alike(kind: str) -> None:
    keys = [request.key if isinstance(request.key, tuple) else (request.key,) for request in planned(mix=kind)]
    warehouses = Counter(key[0] for key in keys)
    assert set(warehouses) == {1, 2, 3, 4}
    assert max(warehouses.values()) < 1.15 * COUNT / 4
    if len(keys[0]) > 1:
        assert set(Counter(key[1] for key in keys)) == set(range(1, 11))


def test_new_orders_are_as_the_standard_has_them() -> None:
    requests = planned(mix="new-order")
    lines = [line for request in requests for line in request.arguments[1]]
    assert {request.function for request in requests} == {"new_order", "local_new_order"}
    assert {len(request.arguments[1]) for request in requests} == set(range(5, 16))
    assert {line.quantity for line in lines} == set(range(1, 11))
    assert {line.supply_w_id for line in lines} == {1, 2, 3, 4}
    assert all(1 <= request.arguments[0] <= 300 for request in requests)
    items = Counter(line.i_id for line in lines)
    assert set(items) <= set(range(1, 10_002))
    # NURand: a uniform draw would have the most frequent item about 10 times in 20,000.
    assert max(count for item, count in items.items() if item != 10_001) > 15


@pytest.mark.parametrize("share", [0.0, 0.01, 0.25, 1.0])
def test_the_share_of_new_orders_that_are_rolled_back_is_exact(share: float) -> None:
    requests = planned(mix="new-order", rollback=share)
    unused = [[line.i_id == 10_001 for line in request.arguments[1]] for request in requests]
    assert sum(map(any, unused)) == round(share * COUNT)
    assert not any(any(of_one[:-1]) for of_one in unused)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3])
def test_the_share_of_lines_from_other_warehouses_is_exact(share: float) -> None:
    away = [
        line.supply_w_id != request.key[0]
        for request in planned(mix="new-order", remote_item=share)
        for line in request.arguments[1]
    ]
    assert abs(sum(away) - share * len(away)) <= 0.5


@pytest.mark.parametrize("share", [0.0, 0.15, 1.0])
def test_the_share_of_payments_of_other_warehouses_customers_is_exact(share: float) -> None:
    requests = planned(mix="payment", remote_customer=share)
    away = [request for request in requests if request.arguments[1] != request.key]
    assert len(away) == round(share * COUNT)
    assert all(request.arguments[2] == request.arguments[0] for request in requests if request not in away)
    if away:
        assert {request.arguments[1] for request in away} == {1, 2, 3, 4}
        assert {request.arguments[2] for request in away} == set(range(1, 11))
        assert sum(request.arguments[2] == request.arguments[0] for request in away) < 0.2 * len(away)


def test_one_warehouse_alone_has_nothing_remote() -> None:
    for request in planned(warehouses=1, remote_item=0.5, remote_customer=0.5):
        if request.kind == "payment":
            assert request.arguments[1:3] == (1, request.arguments[0])
        elif request.kind == "new-order":
            assert {line.supply_w_id for line in request.arguments[1]} == {1}


def test_payments_are_as_the_standard_has_them() -> None:
    requests = planned(mix="payment")
    amounts = [request.arguments[4] for request in requests]
    assert 1_00 <= min(amounts) < 50_00
    assert 4_950_00 < max(amounts) <= 5_000_00
    assert {request.arguments[0] for request in requests} == set(range(1, 11))


@pytest.mark.parametrize("share", [0.0, 0.6, 1.0])
def test_the_share_of_customers_by_name_is_exact_and_everybody_named_is_there(share: float) -> None:
    names = {last_name(number) for number in range(100)}
    for kind in ("payment", "order-status"):
        requests = planned(mix=kind, by_name=share)
        asked = [request.arguments[3] if kind == "payment" else request.arguments[0] for request in requests]
        by_name = [who for who in asked if isinstance(who, str)]
        assert len(by_name) == round(share * COUNT)
        assert set(by_name) <= names
        assert {who for who in asked if isinstance(who, int)} <= set(range(1, 301))


def test_order_statuses_are_asked_of_the_customers_district() -> None:
    assert {request.operator.name for request in planned(mix="order-status")} == {"district"}
    assert {request.key[1] for request in planned(mix="order-status")} == set(range(1, 11))


def test_deliveries_and_stock_levels_are_as_the_standard_has_them() -> None:
    assert {request.arguments[0] for request in planned(mix="delivery")} == set(range(1, 11))
    assert {request.arguments[0] for request in planned(mix="stock-level")} == set(range(10, 21))


def test_keys_and_functions_are_the_apps() -> None:
    app = TpcC(Settings()).app
    for request in planned():
        assert app.operators[request.operator.name] is request.operator
        assert request.function in request.operator.functions
        assert 0 <= request.operator.slot_of(request.operator.key_space.check(request.key), N_SLOTS_DEFAULT) < 4


def test_the_same_client_draws_the_same_and_another_one_does_not() -> None:
    same, again = ([request[2:] for request in planned.__wrapped__()] for _ in range(2))
    assert same == again
    for other in (planned(client=1, clients=2), planned(seed=2)):
        assert [request[2:] for request in other[:50]] != same[:50]


def test_terminals_send_what_stays_in_their_warehouse_as_local_functions() -> None:
    for request in planned():
        if request.kind == "new-order":
            home = all(line.supply_w_id == request.key[0] for line in request.arguments[1])
        else:
            home = request.kind == "delivery" or (request.kind == "payment" and request.arguments[1] == request.key)
        assert request.function.startswith("local_") == home, request


def test_nothing_is_local_if_the_options_say_so_and_nothing_else_changes() -> None:
    requests = planned(at_home="ordinary")
    assert not any(request.function.startswith("local_") for request in requests)
    declared = [request._replace(function=request.function.removeprefix("local_")) for request in planned()]
    assert declared == requests


def test_an_order_with_one_line_from_elsewhere_is_no_local_one() -> None:
    requests = planned(mix="new-order", remote_item=1.0)
    assert {request.function for request in requests} == {"new_order"}
    assert {request.function for request in planned(mix="new-order", warehouses=1)} == {"local_new_order"}

"""The schedule: how many requests are due when."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.schedule import Tick, ticks

PLAN = LoadPlan(rate=1000, warm_up_s=0.5, duration_s=1.5, tick_s=0.002)


def test_even_arrivals_are_due_at_the_beginning_of_their_tick() -> None:
    plan = msgspec.structs.replace(PLAN, rate=4, warm_up_s=0.0, duration_s=1.0, tick_s=0.1)
    found = [(round(offset_s, 6), requests) for offset_s, requests in ticks(plan, 0)]
    assert found == [(0.0, 1), (0.2, 1), (0.5, 1), (0.7, 1)]


@pytest.mark.parametrize("rate", [0.7, 3, 999, 1000, 12_345.6])
@pytest.mark.parametrize("clients", [1, 3, 7])
def test_clients_together_have_the_whole_rate(rate: float, clients: int) -> None:
    plan = msgspec.structs.replace(PLAN, rate=rate, clients=clients)
    of_clients = [sum(tick.requests for tick in ticks(plan, client)) for client in range(clients)]
    expected = rate * 2.0
    assert abs(sum(of_clients) - expected) <= 1
    assert max(of_clients) - min(of_clients) <= 1


def test_the_window_has_exactly_its_share() -> None:
    in_window = [tick.requests for tick in ticks(PLAN, 0) if tick.offset_s >= 0.5 - 1e-9]
    assert sum(in_window) == 1500


def test_no_request_is_due_after_the_window() -> None:
    for client in range(3):
        plan = msgspec.structs.replace(PLAN, clients=3)
        assert max(tick.offset_s for tick in ticks(plan, client)) < 2.0


def test_poisson_arrivals_have_the_mean_and_the_variance_of_a_poisson_process() -> None:
    plan = LoadPlan(rate=2000, duration_s=20, warm_up_s=0, tick_s=0.01, arrivals="poisson", clients=2)
    counts = dict.fromkeys(range(2000), 0)
    for client in range(2):
        for tick in ticks(plan, client):
            counts[int(tick.offset_s / 0.01 + 1e-6)] += tick.requests
    mean = sum(counts.values()) / len(counts)
    variance = sum((count - mean) ** 2 for count in counts.values()) / len(counts)
    assert mean == pytest.approx(20, rel=0.05)
    assert variance == pytest.approx(20, rel=0.2)


def test_poisson_arrivals_are_the_seeds() -> None:
    plan = msgspec.structs.replace(PLAN, arrivals="poisson")

    def drawn(seed: int, client: int) -> list[Tick]:
        return list(ticks(msgspec.structs.replace(plan, seed=seed, clients=2), client))

    assert drawn(1, 0) == drawn(1, 0)
    assert drawn(1, 0) != drawn(2, 0)
    assert [tick.requests for tick in drawn(1, 0)] != [tick.requests for tick in drawn(1, 1)]

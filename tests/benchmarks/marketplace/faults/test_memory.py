"""Memory is flat or not by its thirds, and a worker's may grow as its state does."""

from __future__ import annotations

import pytest

from benchmarks.driver.accounting import Sample, Usage
from benchmarks.marketplace.faults.memory import ENTRY_BYTES, HOUR_S, Stock, growth, slope

MIB = 2**20


def samples(role: str, *sizes: float) -> list[Sample]:
    """One each second, of two processes that have half of it each."""
    return [
        Sample(100.0 + second, {role: {1: Usage(0, round(size / 2)), 2: Usage(0, round(size / 2))}})
        for second, size in enumerate(sizes)
    ]


def test_what_grows_in_the_first_third_alone_is_flat() -> None:
    (found,) = growth(samples("gateway", 10 * MIB, 20 * MIB, 30 * MIB, *[40 * MIB] * 6), [])
    assert (found.role, found.middle, found.last, found.slope) == ("gateway", 40 * MIB, 40 * MIB, 0)
    assert found.flat


def test_what_grows_on_is_not() -> None:
    (found,) = growth(samples("gateway", *((40 + 2 * second) * MIB for second in range(10))), [])
    assert found.slope == pytest.approx(2 * MIB * HOUR_S)
    assert not found.flat
    (slow,) = growth(samples("gateway", *((40 + second / 2) * MIB for second in range(10))), [])
    assert slow.flat, "by less than a tenth from third to third"


def test_a_worker_may_grow_by_what_its_state_takes() -> None:
    grows = samples("worker", *((40 + 2 * second) * MIB for second in range(10)))
    entries = 2 * MIB // (ENTRY_BYTES + 100)
    stocks = [Stock(float(second), 7 + entries * second, 100 * entries * second) for second in (0, 4, 9)]
    (found,) = growth(grows, stocks)
    assert found.explained == pytest.approx(6 * MIB, rel=0.001), "for the three seconds of a third"
    assert found.flat
    (whole,) = growth(grows, stocks, copies=2)
    assert whole.explained == pytest.approx(2 * found.explained), "each of two has had all of it"
    (half,) = growth(grows, [stock._replace(entries=stock.entries // 9) for stock in stocks])
    assert not half.flat
    (gateway,) = growth([each._replace(roles={"gateway": each.roles["worker"]}) for each in grows], stocks)
    assert gateway.explained == 0, "it has no state"


def test_a_role_without_processes_in_a_third_is_not_judged() -> None:
    assert growth([], []) == []
    assert growth(samples("gateway", 1, 1, 1)[:1] + samples("worker", 1, 1, 1, 1)[1:], [])[0].role == "worker"


def test_a_slope_needs_two_times() -> None:
    assert slope([]) == slope([(1.0, 5.0)]) == slope([(1.0, 5.0), (1.0, 9.0)]) == 0
    assert slope([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) == pytest.approx(2)

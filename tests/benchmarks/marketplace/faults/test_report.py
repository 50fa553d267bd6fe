"""The lines at the end, and what makes a run fail."""

from __future__ import annotations

from benchmarks.driver.timeline import Point
from benchmarks.marketplace.faults.memory import Growth, Stock
from benchmarks.marketplace.faults.report import fault_lines, memory_lines, wrongs
from benchmarks.marketplace.faults.striking import Struck

MIB = 2**20
FLAT = Growth("coordinator", 100.0 * MIB, 109.0 * MIB, 5.0 * MIB)
GROWING = Growth("worker", 100.0 * MIB, 140.0 * MIB, 90.0 * MIB, 20.0 * MIB)


def point(at_s: float) -> Point:
    return Point(at_s=at_s, sent=1, outcomes={}, p50_us=10, p99_us=10, max_us=10)


def test_a_line_for_each_kind_with_its_longest_silence() -> None:
    struck = [
        Struck("worker", "worker", 1_010.0, 3.0),
        Struck("store", "store", 1_020.0, 9.0),
        Struck("worker", "frozen-worker", 1_030.0, 12.0),
    ]
    silent = {*range(11, 14), *range(31, 38)}
    worker, store = fault_lines(struck, 1_000.0, [point(at) for at in range(60) if at not in silent], 1.0)
    assert worker == (
        "worker         2 times (1 frozen-worker, 1 worker): healed after 7.5 s in the median, 12.0 s at most; "
        "no reply for 5 and 7 s"
    )
    assert store.startswith("store          1 times (1 store): healed after 9.0 s")
    assert store.endswith("no reply for 0 and 0 s")


def test_memory_is_told_and_judged() -> None:
    stocks = [Stock(10.0, 100, MIB), Stock(50.0, 300, 3 * MIB)]
    flat, growing, state = memory_lines([FLAT, GROWING], stocks, judged=True)
    assert flat == "memory       coordinator: 100 MiB in the middle third, 109 in the last, +5.0 MiB an hour: flat"
    assert "140 in the last, +90.0 MiB an hour; the state explains +20.0 MiB from third to third: NOT FLAT" in growing
    assert state == "state        from 100 entries of 1.0 MiB to 300 of 3.0 MiB in 40 s"
    (broker,) = memory_lines([GROWING._replace(role="broker")], [], judged=True)
    assert broker.endswith("an hour"), "it is not ours to judge"
    assert not any("FLAT" in line or "flat" in line for line in memory_lines([FLAT, GROWING], [], judged=False))


def test_what_makes_a_run_fail() -> None:
    assert wrongs([FLAT], judged=True, violations=0, sampled=0, repeated=0) == []
    assert wrongs([GROWING], judged=False, violations=0, sampled=0, repeated=0) == []
    assert wrongs([GROWING._replace(role="client")], judged=True, violations=0, sampled=0, repeated=0) == []
    assert wrongs([FLAT, GROWING], judged=True, violations=1, sampled=2, repeated=3) == [
        "1 violations at the end",
        "2 violations at sampled epochs",
        "3 replies came twice",
        "the memory of worker grows",
    ]

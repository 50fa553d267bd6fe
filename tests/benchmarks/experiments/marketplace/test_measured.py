"""What is kept of runs, and how two settings compare."""

from __future__ import annotations

import msgspec
import pytest

from benchmarks.experiments.marketplace.measured import Measured, Ratio, ratio
from tests.benchmarks.experiments.marketplace.made import CPU_US, run_of


def test_a_kind_apart_is_in_the_rate_and_not_in_what_is_compared() -> None:
    # A part of what was sent in the window was answered behind it: shares count, not numbers.
    made = run_of(100, checkout=1500, dashboard=500)
    measured = Measured(setting="one", number=None)
    measured.add(made, "dashboard")
    assert measured.rate == [100]
    assert measured.compared == [pytest.approx(75)]
    assert measured.cpu_us == [pytest.approx(CPU_US * 100 / 75)], "all of the time, for each of those"
    assert measured.kinds["dashboard"].rate == [pytest.approx(25)]
    assert measured.kinds["checkout"].p50_us == [made.latency["checkout"]["committed"].p50_us]  # type: ignore[index]


def test_without_a_kind_apart_all_are_compared() -> None:
    measured = Measured(setting="one", number=None)
    for apart in ("", "dashboard"):
        measured.add(run_of(100, checkout=1000), apart)
    assert measured.compared == measured.rate == [100, 100]
    assert measured.cpu_us == [CPU_US, CPU_US]


def test_epochs_conflicts_and_failures_are_those_of_the_engines() -> None:
    made = msgspec.structs.replace(run_of(checkout=10), errors={"aborted:CartClosed": 2, "rejected:busy": 1})
    measured = Measured(setting="one", number=3.0)
    measured.add(made, "")
    assert (measured.epoch, measured.locked, measured.failed) == ([4.0], [0.2], [3])


def test_a_run_of_nothing_has_no_figures() -> None:
    measured = Measured(setting="one", number=None)
    measured.add(msgspec.structs.replace(run_of(0), counters={}, cpu_us={}), "dashboard")
    assert (measured.compared, measured.cpu_us, measured.epoch, measured.locked) == ([0], [0], [0], [0])


def test_ratios_are_of_the_same_turns() -> None:
    assert ratio([90, 60, 40], [100, 50, 50]) == Ratio(0.9, 0.8, 1.2)
    assert str(Ratio(0.9, 0.8, 1.2)) == "90% (80%-120%)"
    assert ratio([90], [100, 50]) == Ratio(0.9, 0.9, 0.9), "the second run has not come to this one"
    assert ratio([], [100]) is None

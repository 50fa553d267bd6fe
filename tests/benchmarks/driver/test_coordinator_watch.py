"""What a coordinator's counters tell of snapshots and recoveries, look by look."""

from __future__ import annotations

from benchmarks.driver.coordinator_watch import CoordinatorEvents, recovered
from benchmarks.driver.counters import Scrape


def seen(*looks: Scrape) -> list[tuple[float, str]]:
    """At the times 10, 11, ..."""
    events = CoordinatorEvents()
    marks = [mark for at_s, scrape in enumerate(looks, 10) for mark in events.look(scrape, at_s)]
    return [(mark.at_s, mark.what) for mark in marks]


def snapshots(total: float, age_s: float) -> Scrape:
    return {"styx_snapshots_total": total, "styx_snapshot_age_seconds": age_s}


def test_a_snapshot_was_complete_when_its_age_says() -> None:
    assert seen(snapshots(3, 0.5), snapshots(3, 1.5), snapshots(4, 0.25)) == [(11.75, "snapshot")]


def test_the_first_snapshot_of_all_is_seen() -> None:
    assert seen({"styx_snapshots_total": 0}, snapshots(1, 0.5)) == [(10.5, "snapshot")]


def test_what_was_before_the_first_look_is_not_told() -> None:
    assert seen(snapshots(3, 0.5)) == []


def test_recoveries_by_cause() -> None:
    lost, planned = "styx_recoveries_total{cause=worker_lost}", "styx_recoveries_total{cause=planned}"
    looks = {lost: 0.0, planned: 1.0}, {lost: 1.0, planned: 1.0}, {lost: 1.0, planned: 2.0}
    assert seen(*looks) == [(11, "recovered (worker lost)"), (12, recovered("planned"))]

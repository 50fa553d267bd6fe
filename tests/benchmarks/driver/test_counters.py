"""Counters of processes: read, and compared before and after."""

from __future__ import annotations

from benchmarks.driver.counters import fetch, growth, parse
from benchmarks.driver.probe import Probe

TEXT = """\
# HELP styx_peer_bytes_total The bytes of these frames.
# TYPE styx_peer_bytes_total counter
styx_peer_bytes_total{direction="sent"} 120.0
styx_peer_bytes_total{direction="received"} 80.0
# TYPE styx_epoch_seconds histogram
styx_epoch_seconds_bucket{le="0.1"} 3.0
styx_epoch_seconds_bucket{le="+Inf"} 4.0
styx_epoch_seconds_count 4.0
styx_epoch_seconds_sum 0.5
# TYPE styx_backlog gauge
styx_backlog 17.0
# TYPE styx_snapshot_age_seconds gauge
styx_snapshot_age_seconds NaN
# TYPE styx_memory_limit_bytes gauge
styx_memory_limit_bytes +Inf
"""


def test_the_text_format_is_read_without_buckets() -> None:
    assert parse(TEXT) == {
        "styx_peer_bytes_total{direction=sent}": 120.0,
        "styx_peer_bytes_total{direction=received}": 80.0,
        "styx_epoch_seconds_count": 4.0,
        "styx_epoch_seconds_sum": 0.5,
        "styx_backlog": 17.0,
    }


def test_counters_are_given_as_growth_and_gauges_as_they_are() -> None:
    urls = {"worker": ["a", "b"]}
    before = {"a": {"x_total{d=s}": 10.0, "g": 5.0}, "b": {"x_total{d=s}": 1.0, "g": 1.0}}
    after = {"a": {"x_total{d=s}": 15.0, "g": 2.0}, "b": {"x_total{d=s}": 1.5, "g": 3.0}}
    assert growth(urls, before, after) == {"worker": {"x_total{d=s}": 5.5, "g": 5.0}}


def test_a_process_that_began_anew_counts_from_zero() -> None:
    urls = {"worker": ["a", "b"]}
    assert growth(urls, {"a": {"x_total": 10.0}}, {"a": {"x_total": 3.0}, "b": {"x_total": 2.0}}) == {
        "worker": {"x_total": 5.0}
    }


def test_what_does_not_answer_is_left_out() -> None:
    assert fetch(["http://127.0.0.1:1"]) == {}


def test_a_probe_notices_each_event_once() -> None:
    probe = Probe(dict)
    assert probe._count_events({"c": {"styx_snapshots_total": 3.0}}) == []
    assert probe._count_events({"c": {"styx_snapshots_total": 5.0}}) == ["snapshot", "snapshot"]
    assert probe._count_events({"c": {"styx_snapshots_total": 5.0, "styx_recoveries_total{cause=start}": 0.0}}) == []
    assert probe._count_events({"c": {"styx_recoveries_total{cause=start}": 1.0}}) == ["recovery"]

"""Every value lands in its bucket, one by one or in a batch, and Prometheus' own parser reads the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from styx.metrics.exposition import Exposition, counters, histograms
from styx.metrics.histogram import REQUEST_SECONDS, Histogram

BOUNDS = (0.0, 1.0, 2.5)


def test_bounds_are_included() -> None:
    histogram = Histogram(BOUNDS)
    for value in (-1.0, 0.0, 1.0, 1.5, 2.5, 3.0):
        histogram.observe(value)
    assert histogram.counts == [2, 1, 2, 1]
    assert (histogram.count, histogram.total) == (6, 7.0)
    assert list(histogram.buckets()) == [("0.0", 2), ("1.0", 3), ("2.5", 5), ("+Inf", 6)]


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 9.0])))
def test_a_batch_is_its_values_one_by_one(values: list[float]) -> None:
    single, batch = Histogram(BOUNDS), Histogram(BOUNDS)
    for value in values:
        single.observe(value)
    batch.observe_all(list(values))
    assert (batch.counts, batch.total) == (single.counts, single.total)


@given(st.lists(st.integers(0, 200_000_000)), st.integers(0, 150_000_000))
def test_times_are_counted_as_seconds_since_then(since_us: list[int], now_us: int) -> None:
    single, batch = Histogram(REQUEST_SECONDS), Histogram(REQUEST_SECONDS)
    for at_us in since_us:
        single.observe(max(0, now_us - at_us) / 1e6)
    batch.observe_since(list(since_us), now_us)
    assert batch.counts == single.counts
    assert batch.total == pytest.approx(single.total)


def test_text() -> None:
    histogram = Histogram(BOUNDS)
    histogram.observe(1.0)
    families = [
        histograms("styx_step_seconds", "Steps.", "step", {"one": histogram}),
        counters("styx_replies_total", "Replies.", "outcome", {"committed": 3}),
    ]
    text = Exposition(lambda: families, with_process=True).text()
    assert text.endswith("\n")
    parsed = {family.name: family for family in text_string_to_metric_families(text)}
    samples = {(s.name, *s.labels.values()): s.value for s in parsed["styx_step_seconds"].samples}
    assert samples == {
        ("styx_step_seconds_bucket", "0.0", "one"): 0.0,
        ("styx_step_seconds_bucket", "1.0", "one"): 1.0,
        ("styx_step_seconds_bucket", "2.5", "one"): 1.0,
        ("styx_step_seconds_bucket", "+Inf", "one"): 1.0,
        ("styx_step_seconds_count", "one"): 1.0,
        ("styx_step_seconds_sum", "one"): 1.0,
    }
    (replies,) = parsed["styx_replies"].samples
    assert (replies.name, replies.labels, replies.value) == ("styx_replies_total", {"outcome": "committed"}, 3.0)
    assert parsed["styx_step_seconds"].documentation == "Steps."
    assert "Steps." not in Exposition(list, with_process=False).text()

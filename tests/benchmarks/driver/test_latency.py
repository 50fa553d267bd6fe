"""Latencies as counts in HDR cells, compared with the library's own histogram."""

from __future__ import annotations

import random

import pytest
from hdrh.histogram import HdrHistogram

from benchmarks.driver.latency import (
    LATENCY_US_MAX,
    Cells,
    cell_end,
    decode,
    encode,
    merge,
    percentile_us,
    record,
)


def _histogram() -> HdrHistogram:
    return HdrHistogram(1, LATENCY_US_MAX, 3)


@pytest.mark.parametrize("value", [0, 1, 2047, 2048, 2049, 4095, 4096, 123_456, 59_999_999, LATENCY_US_MAX])
def test_a_value_is_in_the_same_cell_as_in_the_librarys_histogram(value: int) -> None:
    cells: Cells = {}
    record(cells, [value])
    ((lowest, count),) = cells.items()
    assert count == 1
    assert lowest == _histogram().get_lowest_equivalent_value(value)
    assert cell_end(lowest) == _histogram().get_highest_equivalent_value(value)


def test_percentiles_are_the_librarys() -> None:
    rng = random.Random(1)
    values = [int(rng.lognormvariate(9, 2)) for _ in range(3000)]
    cells: Cells = {}
    record(cells, values[:1000])
    record(cells, values[1000:])
    histogram = _histogram()
    for value in values:
        histogram.record_value(value)
    for percent in (0.1, 50, 90, 99, 99.9, 100):
        assert percentile_us(cells, percent) == histogram.get_value_at_percentile(percent)


def test_a_latency_beyond_the_histogram_counts_as_its_maximum() -> None:
    cells: Cells = {}
    record(cells, [-3, 5, LATENCY_US_MAX * 2, LATENCY_US_MAX * 3])
    assert sum(cells.values()) == 4
    assert percentile_us(cells, 100) >= LATENCY_US_MAX
    assert cells[0] == 1


def test_merging_is_recording_together() -> None:
    one: Cells = {}
    other: Cells = {}
    together: Cells = {}
    record(one, [1, 5000, 5000])
    record(other, [5001, 70_000])
    record(together, [1, 5000, 5000, 5001, 70_000])
    merge(one, other)
    assert one == together


def test_what_is_encoded_is_decoded() -> None:
    cells: Cells = {}
    record(cells, [1, 1, 2047, 5000, 123_456, 7_000_000])
    assert decode(encode(cells)) == cells


def test_no_latencies_have_no_percentile() -> None:
    assert percentile_us({}, 99) == 0

"""Latencies in microseconds, as counts in the cells of an HDR histogram with three significant digits.

The counts are sparse while they are gathered, sent and merged. `hdrh` writes them into result files.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from hdrh.histogram import HdrHistogram

SIGNIFICANT_DIGITS: Final = 3
LATENCY_US_MAX: Final = 3_600_000_000
"""A longer latency counts as an hour."""
_SUB_BUCKET_BITS: Final = 11  # 2 * 10**3 needs eleven

Cells = dict[int, int]
"""Counts by the lowest latency of their cell."""


def cell_end(lowest: int) -> int:
    """The highest latency of the cell whose lowest latency is `lowest`."""
    shift = max(lowest.bit_length() - _SUB_BUCKET_BITS, 0)
    return lowest + (1 << shift) - 1


def record(cells: Cells, latencies_us: Iterable[int]) -> None:
    """Adds many latencies. It sorts them first, so that each cell takes one step."""
    values = sorted(latencies_us)
    at, end = 0, len(values)
    while at < end:
        value = min(max(values[at], 0), LATENCY_US_MAX)
        shift = max(value.bit_length() - _SUB_BUCKET_BITS, 0)
        lowest = value >> shift << shift
        after = bisect_right(values, lowest + (1 << shift) - 1, at) if value < LATENCY_US_MAX else end
        cells[lowest] = cells.get(lowest, 0) + after - at
        at = after


def merge(cells: Cells, other: Cells) -> None:
    """Adds the counts of `other`."""
    for lowest, count in other.items():
        cells[lowest] = cells.get(lowest, 0) + count


def percentile_us(cells: Cells, percent: float) -> int:
    """The latency that `percent` of the requests did not exceed, 0 if there are none."""
    total = sum(cells.values())
    wanted = max(int(percent / 100 * total + 0.5), 1)
    seen = 0
    for lowest in sorted(cells):
        seen += cells[lowest]
        if seen >= wanted:
            return cell_end(lowest)
    return 0


def encode(cells: Cells) -> str:
    """As HdrHistogram's compressed V2 format in base64, which other tools can read."""
    histogram = _histogram()
    for lowest, count in cells.items():
        histogram.record_value(lowest, count)
    return bytes(histogram.encode()).decode()


def decode(text: str) -> Cells:
    """The cells of what `encode` has written."""
    histogram = HdrHistogram.decode(text)
    return {
        histogram.get_lowest_equivalent_value(item.value_iterated_to): item.count_at_value_iterated_to
        for item in histogram.get_recorded_iterator()
    }


def _histogram() -> HdrHistogram:
    return HdrHistogram(1, LATENCY_US_MAX, SIGNIFICANT_DIGITS)

"""A process's metrics in Prometheus' text format, computed when they are read.

Families are given with the full names under which they are scraped, so that a search finds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from styx.metrics.histogram import Histogram
from styx.process.memory import memory_limit_bytes

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def counter(name: str, text: str, value: float) -> Metric:
    """A number that only grows; its name ends in `_total`."""
    return CounterMetricFamily(name, text, value=value)


def counters(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    """One number for each value of a label."""
    family = CounterMetricFamily(name, text, labels=[label])
    for which, value in values.items():
        family.add_metric([which], value)
    return family


def gauge(name: str, text: str, value: float) -> Metric:
    """A number that goes up and down."""
    return GaugeMetricFamily(name, text, value=value)


def gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    """One number for each value of a label."""
    family = GaugeMetricFamily(name, text, labels=[label])
    for which, value in values.items():
        family.add_metric([which], value)
    return family


def histogram(name: str, text: str, observed: Histogram) -> Metric:
    """A distribution."""
    return histograms(name, text, "", {"": observed})


def histograms(name: str, text: str, label: str, observed: Mapping[str, Histogram]) -> Metric:
    """One distribution for each value of a label."""
    family = HistogramMetricFamily(name, text, labels=[label] if label else None)
    for which, one in observed.items():
        buckets = [(bound, float(count)) for bound, count in one.buckets()]
        family.add_metric([which] if label else [], buckets, one.total)
    return family


class Exposition(Collector):
    """`collect` gives the families. `with_process` adds the process's memory and its limit, processor time and open
    files (Linux).
    """

    def __init__(self, collect: Callable[[], Iterable[Metric]], with_process: bool) -> None:
        self._collect = collect
        self._with_process = with_process
        self._registry = CollectorRegistry()
        self._registry.register(self)
        if with_process:
            ProcessCollector(registry=self._registry)

    def collect(self) -> Iterable[Metric]:
        """All families, for the registry at a scrape."""
        yield from self._collect()
        if self._with_process:
            yield gauge(
                "styx_memory_limit_bytes", "Memory that the process may use; +Inf: no limit.", memory_limit_bytes()
            )

    def text(self) -> str:
        """All of them, ending with a newline."""
        return generate_latest(self._registry).decode()

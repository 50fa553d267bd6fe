"""The gateway's own metrics, counted in plain integers and turned into Prometheus' text only when it asks.

The only label is the status, so their number is bounded whatever clients send.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
CLIENT_GONE_STATUS: Final = 499
"""Not an answer, as nobody was there to get it; counted under the number that proxies use for it."""

_BOUNDS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class GatewayMetrics(Collector):
    """Requests by status, their latency and how many are in flight."""

    def __init__(self, in_flight: Callable[[], int]) -> None:
        self._in_flight = in_flight
        self._by_status: dict[int, int] = {}
        self._by_bound = [0] * (len(_BOUNDS_SECONDS) + 1)
        self._seconds = 0.0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def observe(self, status: int, seconds: float) -> None:
        """Counts one request that was answered with `status` after `seconds`."""
        self._by_status[status] = self._by_status.get(status, 0) + 1
        self._by_bound[bisect_left(_BOUNDS_SECONDS, seconds)] += 1
        self._seconds += seconds

    def text(self) -> str:
        """All of them in Prometheus' text format."""
        return generate_latest(self._registry).decode()

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for at a scrape."""
        requests = CounterMetricFamily("styx_gateway_requests", "Requests by HTTP status.", labels=["status"])
        for status, count in sorted(self._by_status.items()):
            requests.add_metric([str(status)], count)
        yield requests
        latency = HistogramMetricFamily("styx_gateway_request_seconds", "From a request's headers to its answer.")
        bounds = [*map(str, _BOUNDS_SECONDS), "+Inf"]
        counts = accumulate(self._by_bound)
        latency.add_metric([], list(zip(bounds, map(float, counts), strict=True)), self._seconds)
        yield latency
        in_flight = GaugeMetricFamily("styx_gateway_in_flight", "Requests not answered yet.")
        in_flight.add_metric([], self._in_flight())
        yield in_flight

"""The gateway's own metrics, counted in plain integers and turned into Prometheus' text only when it asks.

The labels are the status and the code of a refusal, so their number is bounded whatever clients send.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import Metric

from styx.metrics.exposition import Exposition, counters, gauge, histogram
from styx.metrics.histogram import REQUEST_SECONDS, Histogram

CLIENT_GONE_STATUS: Final = 499
"""Not an answer, as nobody was there to get it; counted under the number that proxies use for it."""


class GatewayMetrics:
    """Requests by status, their latency and how many are in flight."""

    def __init__(self, in_flight: Callable[[], int]) -> None:
        self._in_flight = in_flight
        self._by_status: dict[int, int] = {}
        self._refused: dict[str, int] = {}
        self._latency = Histogram(REQUEST_SECONDS)
        # The process's memory is the engine's to tell: it has this text put behind its own.
        self._exposition = Exposition(self._collect, with_process=False)

    def observe(self, status: int, seconds: float) -> None:
        """Counts one request that was answered with `status` after `seconds`."""
        self._by_status[status] = self._by_status.get(status, 0) + 1
        self._latency.observe(seconds)

    def refused(self, code: str) -> None:
        """Counts one request that was refused at the door, for the reason `code`."""
        self._refused[code] = self._refused.get(code, 0) + 1

    def text(self) -> str:
        """All of them in Prometheus' text format."""
        return self._exposition.text()

    def _collect(self) -> Iterator[Metric]:
        by_status = {str(status): count for status, count in sorted(self._by_status.items())}
        yield counters("styx_gateway_requests_total", "Requests by HTTP status.", "status", by_status)
        yield counters("styx_gateway_refused_total", "Requests refused at the door.", "code", self._refused)
        yield histogram("styx_gateway_request_seconds", "From a request's headers to its answer.", self._latency)
        yield gauge("styx_gateway_in_flight", "Requests not answered yet.", self._in_flight())

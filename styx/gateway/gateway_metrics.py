"""What a gateway counts about its requests. The labels are the status and the code of a refusal: their number is
bounded, whatever clients send.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric

from styx.metrics.exposition import Exposition, counter, counters, gauge, histogram
from styx.metrics.histogram import REQUEST_SECONDS, Histogram


class GatewayMetrics:
    """Requests by status, their latency, and how many are `in_flight`; requests refused at the door; and how many
    `streams` of events are open, and how many were sent; `change_readers` follow changes, and so many epochs were sent
    to them.
    """

    def __init__(self) -> None:
        self.in_flight = 0
        self.streams = 0
        self.events_sent = 0
        self.change_readers = 0
        self.changed_epochs_sent = 0
        self._by_status: dict[int, int] = {}
        self._refused: dict[str, int] = {}
        self._latency = Histogram(REQUEST_SECONDS)
        # Without the process's memory: the engine's metrics, which precede this text, have it.
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
        yield gauge("styx_gateway_in_flight", "Requests not answered yet.", self.in_flight)
        yield gauge("styx_gateway_event_streams", "Readers of events that are connected.", self.streams)
        yield counter("styx_gateway_events_sent_total", "Events sent to readers.", self.events_sent)
        yield gauge("styx_gateway_change_readers", "Readers of changes that are connected.", self.change_readers)
        epochs = "Epochs with changes sent to readers."
        yield counter("styx_gateway_changed_epochs_sent_total", epochs, self.changed_epochs_sent)

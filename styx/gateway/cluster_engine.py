"""The gateway's engine in a cluster: requests go out through Kafka, and whatever worker owns their slot runs them.

It runs nothing and keeps nothing; gateways side by side share only Kafka. It never sends a request again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from styx.app import App
from styx.kafka_requests.counters import BOUNDS_SECONDS
from styx.kafka_requests.errors import KafkaUnreachable
from styx.kafka_requests.requester import Requester
from styx.kafka_requests.routing import AppRouter
from styx.limits import Limits
from styx.log.kafka.address import KafkaAddress
from styx.messages import ReplyRecord, Request


class ClusterEngine:
    """Serves `app` for a gateway, on the event loop it is made on.

    `n_slots` is 0 before the start.
    """

    def __init__(self, app: App, address: KafkaAddress, limits: Limits | None = None) -> None:
        self.app = app
        self.limits = limits or Limits()
        self.n_slots = 0
        self._requester = Requester(address, app.name, self.limits)
        self._router: AppRouter | None = None
        self._registry = CollectorRegistry()
        self._registry.register(_RequesterMetrics(self._requester))

    async def start(self) -> None:
        """Connects; raises `KafkaUnreachable`, or `ConfigurationError` if the app has no topics there."""
        await self._requester.start()
        self.n_slots = self._requester.n_slots
        self.set_app(self.app)

    async def close(self) -> None:
        """Disconnects; requests under way may still commit. Closing twice is harmless."""
        await self._requester.close()

    def set_app(self, app: App) -> None:
        """Serves another version of the app from the next request on."""
        self.app = app
        self._router = AppRouter(app, self.n_slots)

    @property
    def ready(self) -> bool:
        """As `Engine.ready`."""
        return self._requester.unavailable_reason is None

    @property
    def unavailable_reason(self) -> str | None:
        """As `Engine.unavailable_reason`: Kafka has been away for some time."""
        return self._requester.unavailable_reason

    @property
    def in_flight(self) -> int:
        """Requests that wait for their reply."""
        return self._requester.in_flight

    def submit_request(self, request: Request) -> Awaitable[ReplyRecord]:
        """As `Engine.submit_request`; also raises `BadKey`."""
        if self._router is None:
            raise KafkaUnreachable("the gateway is not connected to Kafka yet")
        key = tuple(request.key) if isinstance(request.key, list) else request.key
        return self._requester.submit_raw(request, self._router.place_by_name(request.operator, key)[1])

    def metrics(self) -> str:
        """As `Engine.metrics`."""
        return generate_latest(self._registry).decode()


class _RequesterMetrics(Collector):
    def __init__(self, requester: Requester) -> None:
        self._requester = requester

    def collect(self) -> Iterator[Metric]:
        requester, counters = self._requester, self._requester.counters
        replies = CounterMetricFamily("styx_requester_replies", "Replies received, by outcome.", labels=["outcome"])
        for outcome in ("committed", "aborted", "rejected"):
            replies.add_metric([outcome], getattr(counters, outcome))
        yield replies
        latency = HistogramMetricFamily("styx_requester_reply_seconds", "From a request to its reply, through Kafka.")
        bounds = [*map(str, BOUNDS_SECONDS), "+Inf"]
        counts = accumulate(counters.by_bound)
        latency.add_metric([], list(zip(bounds, map(float, counts), strict=True)), counters.seconds)
        yield latency
        for name, text, value in (
            ("sent", "Requests taken.", counters.sent),
            ("rerouted", "Requests that a worker sent back, and that went to another slot.", counters.rerouted),
            ("foreign_replies", "Reply records passed over: another process's, or too late.", counters.foreign),
            ("garbage_replies", "Reply records that could not be decoded.", counters.garbage),
        ):
            counter = CounterMetricFamily(f"styx_requester_{name}", text)
            counter.add_metric([], value)
            yield counter
        for name, text, number in (
            ("styx_in_flight", "Requests that wait for their reply.", requester.in_flight),
            ("styx_kafka_reachable", "1 if Kafka answers.", requester.unavailable_reason is None),
        ):
            gauge = GaugeMetricFamily(name, text)
            gauge.add_metric([], number)
            yield gauge

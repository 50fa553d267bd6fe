"""The gateway's engine in a cluster: requests go out through Kafka, and whatever worker owns their slot runs them.

It runs nothing and keeps nothing; gateways side by side share only Kafka. It never sends a request again.
"""

from __future__ import annotations

from collections.abc import Awaitable

from styx.client.kafka.requester import Requester
from styx.client.kafka.routing import AppRouter
from styx.cluster.gateway.requester_metrics import collect
from styx.errors import NotSent
from styx.kafka.address import KafkaAddress
from styx.messages import ReplyRecord, Request
from styx.metrics.exposition import Exposition
from styx.model.app import App
from styx.model.limits import Limits


class ClusterEngine:
    """Serves `app` for a gateway, on the event loop it is made on.

    `n_slots` is 0 before the start. `requester` is its connection to Kafka, for others to read.
    """

    def __init__(self, app: App, address: KafkaAddress, limits: Limits | None = None) -> None:
        self.app = app
        self.limits = limits or Limits()
        self.n_slots = 0
        self.requester = Requester(address, app.name, self.limits)
        self._router: AppRouter | None = None
        self._exposition = Exposition(lambda: collect(self.requester), with_process=True)

    async def start(self) -> None:
        """Connects; raises `NotSent`, or `ConfigurationError` if the app has no topics there."""
        await self.requester.start()
        self.n_slots = self.requester.n_slots
        self.set_app(self.app)

    async def close(self) -> None:
        """Disconnects; requests under way may still commit. Closing twice is harmless."""
        await self.requester.close()

    def set_app(self, app: App) -> None:
        """Serves another version of the app from the next request on."""
        self.app = app
        self._router = AppRouter(app, self.n_slots)

    @property
    def ready(self) -> bool:
        """As `Engine.ready`."""
        return self.requester.unavailable_reason is None

    @property
    def unavailable_reason(self) -> str | None:
        """As `Engine.unavailable_reason`: Kafka has been away for some time."""
        return self.requester.unavailable_reason

    @property
    def broken_reason(self) -> str | None:
        """As `Engine.broken_reason`: requests or replies are no longer seen to, and Kafka is not to blame."""
        return self.requester.broken_reason

    @property
    def in_flight(self) -> int:
        """Requests that wait for their reply."""
        return self.requester.in_flight

    def submit_request(self, request: Request) -> Awaitable[ReplyRecord]:
        """As `Engine.submit_request`; also raises `BadKey`."""
        if self._router is None:
            raise NotSent("the gateway is not connected to Kafka yet")
        key = tuple(request.key) if isinstance(request.key, list) else request.key
        return self.requester.submit_raw(request, self._router.place_by_name(request.operator, key)[1])

    def metrics(self) -> str:
        """As `Engine.metrics`."""
        return self._exposition.text()

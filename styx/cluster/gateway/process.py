"""The gateway process: follows the app that the coordinator deploys, and sends its requests to Kafka.

An engine for the HTTP gateway. It starts before it knows which app to serve, and goes on with the last app while the
coordinator is away. It refuses requests if the coordinator is of a release with another version of the protocol,
because that release's workers might misread them. Requests never pass the coordinator: the worker that owns their slot
reads them from Kafka. Reads outside the log go to that worker directly.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Iterator
from typing import Final

from prometheus_client.core import Metric

from styx.client.kafka.events import KafkaEvents
from styx.client.kafka.requester import RequestCounters, Requester
from styx.cluster.gateway.changes import ClusterChanges
from styx.cluster.gateway.coordinator_link import CoordinatorLink
from styx.cluster.gateway.reads import ClusterReads
from styx.cluster.wire import GATEWAY, INGEST_FACT, Code, Deployment, Owners, Serve, gateway_hears
from styx.deployment.package import unpack
from styx.errors import ConfigurationError, NotSent, RequestRejected
from styx.host.waiters import Receiver
from styx.kafka.address import KafkaAddress
from styx.messages import ReplyRecord
from styx.metrics import families
from styx.metrics.exposition import Exposition, counter, counters, gauge, histogram
from styx.model.app import App
from styx.model.freshness import Freshness
from styx.model.limits import Limits
from styx.model.operator import Operator
from styx.model.request import AppRouter, Placed, RequestMaker
from styx.transport import Hello, Refused, Security
from styx.transport.handshake import Refusal

RECONNECT_SECONDS: Final = 0.5
"""The pause before another attempt to reach Kafka."""
INCARNATION_BYTES: Final = 8
STUCK_SECONDS: Final = 60.0
"""A step of following the coordinator that takes longer counts as stuck, because all timeouts are shorter."""


class _NoApp(App):
    """The app before the gateway has received one: it cannot say which operators exist."""

    def __init__(self) -> None:
        super().__init__("unknown", [])

    def operator(self, name: str) -> Operator:
        raise RequestRejected("unavailable", "the gateway has not heard from the coordinator yet; try again soon")


class GatewayProcess:
    """An `Engine` for `styx.gateway`; `run` follows the coordinator until it is cancelled.

    `version` is the served version of the app, 0 before the first. Without `serves` it counts as no gateway, and is the
    part of `styx ingest` that does as one.
    """

    def __init__(self, name: str, security: Security, coordinator: str, log: KafkaAddress, serves: bool = True) -> None:
        self.app: App = _NoApp()
        self.limits = Limits()
        self.n_slots = 0
        self.version = 0
        self._security = security
        self._coordinator = coordinator
        self._log = log
        self._what = "gateway" if serves else "ingest"
        self._told = logging.getLogger(f"styx.{self._what}")
        self._hello = Hello(
            cluster=security.cluster,
            role=GATEWAY,
            name=name,
            incarnation=secrets.token_hex(INCARNATION_BYTES),
            facts={} if serves else {INGEST_FACT: ""},
        )
        self._reads = ClusterReads(security, self._hello, lambda: self.limits)
        self.changes = ClusterChanges(self._reads)
        self._deployment: Deployment | None = None
        self.maker: RequestMaker
        self._requester: Requester | None = None
        self._exposition = Exposition(self._collect, with_process=True)
        self._step_since_s: float | None = None
        self._other_release: str | None = None
        self._waits_for: str | None = f"the {self._what} waits for the coordinator at {coordinator}"
        self._link = CoordinatorLink(
            coordinator,
            security,
            self._hello,
            self._told,
            self._what,
            self._hear,
            reached=self._reached,
            lost=self._lost,
            refused=self._refused,
        )

    async def run(self) -> None:
        """Serves the coordinator's deployment. Raises `ConfigurationError` if the coordinator's deployment changes to
        another one.
        """
        await self._link.run()

    async def close(self) -> None:
        """Disconnects from Kafka and the workers; requests under way may still commit."""
        self._reads.close()
        if self._requester is not None:
            await self._requester.close()

    @property
    def connected(self) -> bool:
        """Whether the coordinator is connected."""
        return self._link.connection is not None

    @property
    def ready(self) -> bool:
        """Whether requests can be sent to Kafka."""
        return self._requester is not None and self._requester.unavailable_reason is None

    @property
    def unavailable_reason(self) -> str | None:
        """As `Engine.unavailable_reason`."""
        if self._requester is None:
            return self._waits_for
        return self._other_release or self._requester.unavailable_reason

    @property
    def broken_reason(self) -> str | None:
        """As `Engine.broken_reason`; also a step of following the coordinator that does not end."""
        since_s = self._step_since_s
        seconds = 0.0 if since_s is None else time.monotonic() - since_s
        if seconds > STUCK_SECONDS:
            return f"following the coordinator has made no progress for {seconds:.0f} s"
        return None if self._requester is None else self._requester.broken_reason

    @property
    def in_flight(self) -> int:
        """As `Engine.in_flight`."""
        return 0 if self._requester is None else self._requester.in_flight

    def submit_request(self, request: Placed) -> Awaitable[ReplyRecord]:
        """As `Engine.submit_request`."""
        return self._connected_requester().submit(request, raw=True)

    def send_request(self, request: Placed, seconds: float, receiver: Receiver) -> None:
        """As `Engine.send_request`."""
        self._connected_requester().send(request, seconds, receiver, raw=True)

    def _connected_requester(self) -> Requester:
        if self._requester is None:
            raise NotSent(f"{self._waits_for}; nothing was sent, try again soon")
        if self._other_release is not None:
            raise NotSent(f"{self._other_release}; nothing was sent, try again soon")
        return self._requester

    def read(self, request: Placed, freshness: Freshness) -> Awaitable[ReplyRecord]:
        """As `Engine.read`: the worker that owns the slot reads."""
        if self._requester is None:
            raise NotSent(f"{self._waits_for}; nothing was sent, try again soon")
        if self._other_release is not None:
            raise NotSent(f"{self._other_release}; nothing was sent, try again soon")
        return self._reads.read(request, freshness)

    @property
    def events(self) -> KafkaEvents:
        """As `Engine.events`: each reader has connections of its own to the brokers."""
        return KafkaEvents(self._log, self.app.name)

    def metrics(self) -> str:
        """As `Engine.metrics`."""
        return self._exposition.text()

    def _collect(self) -> Iterator[Metric]:
        requester = self._requester
        counts = RequestCounters() if requester is None else requester.counters
        outcomes = {"committed": counts.committed, "aborted": counts.aborted, "rejected": counts.rejected}
        yield counters("styx_requester_replies_total", "Replies received, by outcome.", "outcome", outcomes)
        yield histogram("styx_requester_reply_seconds", "From a request to its reply, through Kafka.", counts.latency)
        rerouted = "Requests that a worker sent back, and that went to another slot."
        foreign = "Reply records passed over: another process's, or too late."
        garbage = "Reply records that could not be decoded."
        yield counter("styx_requester_sent_total", "Requests taken.", counts.sent)
        yield counter("styx_requester_rerouted_total", rerouted, counts.rerouted)
        yield counter("styx_requester_foreign_replies_total", foreign, counts.foreign)
        yield counter("styx_requester_garbage_replies_total", garbage, counts.garbage)
        yield gauge(*families.IN_FLIGHT, self.in_flight)
        reachable = requester is not None and requester.unavailable_reason is None
        yield gauge(*families.KAFKA_REACHABLE, reachable)
        yield gauge("styx_registered", "1 if the coordinator is there.", self.connected)
        yield gauge("styx_app_version", "Version of the app that is served.", self.version)

    # The coordinator ---------------------------------------------------------------------------------------

    def _refused(self, refused: Refused) -> None:
        if refused.refusal is Refusal.VERSION:
            self._other_release = f"the coordinator at {self._coordinator}: {refused}"

    def _reached(self) -> None:
        self._other_release = None

    def _lost(self, reason: str) -> None:
        if self._deployment is not None:
            self._told.warning("the connection to the coordinator is lost: %s", reason)

    async def _hear(self, payload: bytes) -> None:
        self._step_since_s = time.monotonic()
        try:
            message = gateway_hears.decode(payload)
            if isinstance(message, Serve):
                self._take_deployment(message.deployment)
            elif isinstance(message, Owners):
                self._reads.owners(message)
            else:
                await self._take_code(message)
        finally:
            self._step_since_s = None

    def _take_deployment(self, deployment: Deployment) -> None:
        known = self._deployment
        if known is not None and (known.app, known.n_slots) != (deployment.app, deployment.n_slots):
            raise ConfigurationError(
                f"the coordinator at {self._coordinator} now coordinates app {deployment.app!r} with "
                f"{deployment.n_slots} slots; this {self._what} serves {known.app!r} with {known.n_slots}: start it "
                "anew"
            )
        self._deployment = deployment
        if self._requester is None:
            self.limits = deployment.limits
            self._waits_for = f"no version of app {deployment.app!r} has been deployed yet: styx deploy MODULE:APP"

    async def _take_code(self, code: Code) -> None:
        assert self._deployment is not None, "the coordinator says what to serve before it sends code"
        try:
            app = unpack(code.package, self._security.secret)
        except Exception as error:  # noqa: BLE001 - other people's code: it can raise anything
            problem = f"version {code.version} of the app cannot be served here: {type(error).__name__}: {error}"
            self._told.error("%s", problem)
            if self._requester is None:
                self._waits_for = problem
            return
        await self.serve(app)
        if self.version != code.version:
            self._told.info("serving version %d of app %s", code.version, app.name)
        self.version = code.version

    async def serve(self, app: App) -> None:
        """Serves this version of the app from the next request on. The first version waits until Kafka can be
        reached.
        """
        requester = self._requester or await self._connected(app.name)
        self.app, self.maker = app, requester.maker(AppRouter(app, self.n_slots))
        self._requester = requester

    async def _connected(self, app_name: str) -> Requester:
        failures = 0
        while True:
            self._step_since_s = time.monotonic()
            requester = Requester(self._log, app_name, self.limits)
            try:
                await requester.start()
            except (NotSent, ConfigurationError, OSError) as error:
                # The coordinator has made the topics. A broker that does not know them yet soon will.
                failures += 1
                self._waits_for = f"the {self._what} waits for Kafka: {error}"
                if failures == 1:
                    self._told.warning("%s", self._waits_for)
                await asyncio.sleep(RECONNECT_SECONDS)
                continue
            self.n_slots = requester.n_slots
            return requester

"""The gateway process: hears from the coordinator which app it serves, and follows deployments.

An engine for the HTTP gateway that begins before it knows what to serve, and goes on with what it knows while the
coordinator is away. Requests never pass the coordinator.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable
from typing import Final

from styx.app import App
from styx.cluster.wire import GATEWAY, Code, Deployment, Serve, gateway_hears
from styx.deployment.package import unpack
from styx.errors import ConfigurationError, RequestRejected
from styx.gateway.cluster_engine import ClusterEngine
from styx.kafka_requests.errors import KafkaUnreachable
from styx.limits import Limits
from styx.log.kafka.address import KafkaAddress
from styx.messages import ReplyRecord, Request
from styx.operator import Operator
from styx.transport import Connection, Hello, Security, dial

RECONNECT_SECONDS: Final = 0.5
"""Before another attempt to reach the coordinator or Kafka."""
DIAL_SECONDS_MAX: Final = 2.0
PING_SECONDS: Final = 0.25
SILENCE_SECONDS: Final = 3.0
"""A coordinator that is silent for longer is gone, whatever its half of the connection says."""

_log = logging.getLogger("styx.gateway")


class _NoApp(App):
    """Stands for the app while the gateway has not heard of it: nothing can be said of any operator."""

    def __init__(self) -> None:
        super().__init__("unknown", [])

    def operator(self, name: str) -> Operator:
        raise RequestRejected("unavailable", "the gateway has not heard from the coordinator yet; try again soon")


class GatewayProcess:
    """An `Engine` for `styx.gateway`; `run` follows the coordinator until it is cancelled.

    `connected` says whether the coordinator is there, `version` which version of the app is served, 0 before the first.
    """

    def __init__(self, name: str, security: Security, coordinator: str, log: KafkaAddress) -> None:
        self.app: App = _NoApp()
        self.limits = Limits()
        self.n_slots = 0
        self.version = 0
        self.connected = False
        self._name = name
        self._security = security
        self._coordinator = coordinator
        self._log = log
        self._incarnation = secrets.token_hex(8)
        self._deployment: Deployment | None = None
        self._engine: ClusterEngine | None = None
        self._starting: asyncio.Task[None] | None = None
        self._away: str | None = "the gateway has not heard from the coordinator yet"
        self._ended: asyncio.Future[None] = asyncio.get_event_loop_policy().get_event_loop().create_future()

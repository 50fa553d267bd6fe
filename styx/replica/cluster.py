"""What a replica hears of a cluster: from the coordinator who gives epochs, and the connections to those workers.

It takes no requests and says nothing that a worker waits for.
"""

from __future__ import annotations

import logging
import secrets
from typing import Final

from styx.cluster.gateway.coordinator_link import CoordinatorLink
from styx.cluster.gateway.reads import ClusterReads
from styx.cluster.wire import GATEWAY, REPLICA_FACT, Deployment, Owners, Serve, gateway_hears
from styx.errors import ConfigurationError
from styx.model.limits import Limits
from styx.transport import Hello, Refused, Security

INCARNATION_BYTES: Final = 8

_log = logging.getLogger("styx.replica")


class Cluster:
    """The cluster whose coordinator listens at `coordinator`. `reads` has the connections, and what the coordinator has
    said last; `deployment` what is coordinated, None before it was reached.
    """

    def __init__(self, name: str, security: Security, coordinator: str) -> None:
        hello = Hello(
            cluster=security.cluster,
            role=GATEWAY,
            name=name,
            incarnation=secrets.token_hex(INCARNATION_BYTES),
            facts={REPLICA_FACT: ""},
        )
        self.coordinator = coordinator
        self.deployment: Deployment | None = None
        self.refused: str | None = None
        self.reads = ClusterReads(security, hello, self._limits)
        self._link = CoordinatorLink(
            coordinator, security, hello, _log, "replica", self._hear,
            reached=self._reached, lost=self._lost, refused=self._refuse,
        )  # fmt: skip

    @property
    def connected(self) -> bool:
        """Whether the coordinator is."""
        return self._link.connection is not None

    async def run(self) -> None:
        """Hears until it is cancelled. Raises `ConfigurationError` if the coordinator's deployment changes to another
        one.
        """
        try:
            await self._link.run()
        finally:
            self.reads.close()

    def bytes_received(self) -> dict[int | None, int]:
        """By worker, and from the coordinator under None; not from those that are not connected."""
        found: dict[int | None, int] = dict(self.reads.bytes_received().items())
        if self._link.connection is not None:
            found[None] = self._link.connection.bytes_received
        return found

    def _limits(self) -> Limits:
        return Limits() if self.deployment is None else self.deployment.limits

    def _reached(self) -> None:
        self.refused = None

    def _lost(self, reason: str) -> None:
        _log.warning("the connection to the coordinator is lost: %s", reason)

    def _refuse(self, refused: Refused) -> None:
        self.refused = str(refused)

    async def _hear(self, payload: bytes) -> None:
        message = gateway_hears.decode(payload)
        if isinstance(message, Serve):
            known, now = self.deployment, message.deployment
            if known is not None and (known.app, known.n_slots) != (now.app, now.n_slots):
                raise ConfigurationError(
                    f"the coordinator at {self.coordinator} now coordinates app {now.app!r} with {now.n_slots} slots; "
                    f"this replica follows {known.app!r} with {known.n_slots}: start it anew"
                )
            self.deployment = now
        elif isinstance(message, Owners):
            self.reads.owners(message)

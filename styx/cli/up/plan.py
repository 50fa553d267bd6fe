"""The plan of `styx up`: numbers, addresses, and from them each process's arguments and environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from styx.cli.cluster_setup import ANY_ADDRESS, SECRET_FILE_VARIABLE, SECRET_VARIABLE
from styx.cli.common_options import ClusterNumbers, DataOptions
from styx.cli.front_options import FrontOptions
from styx.cli.store_options import INHERITED, words_of
from styx.transport.address import format_address

KEPT: Final = (
    *INHERITED,
    "STYX_KAFKA_",
    "STYX_INGEST_",
    "STYX_TLS_",
    "STYX_DEBUG",
    "STYX_LOG_FORMAT",
    "STYX_FACTS_TOKEN",
    "STYX_PLAIN",
)
"""Variables of this command that its children inherit; they would take the others for options of their own."""
LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class UpPlan:
    """A cluster on this machine."""

    app: str
    cluster: str
    workers: int
    data: DataOptions
    host: str
    front: FrontOptions
    gateway_ports: list[int]
    coordinator_port: int
    facts_port: int
    numbers: ClusterNumbers
    directory: Path
    ingests: bool = False
    """Whether topics of others are read: the app declares some."""

    @property
    def coordinator(self) -> str:
        """The coordinator's address for workers, gateways and commands."""
        return format_address(LOOPBACK, self.coordinator_port)

    @property
    def facts_url(self) -> str:
        """The address of the coordinator's facts."""
        return f"http://{LOOPBACK}:{self.facts_port}"

    @property
    def gateway_urls(self) -> list[str]:
        """The gateways' addresses, for this machine."""
        host = LOOPBACK if self.host in ANY_ADDRESS else self.host
        scheme = "http" if self.front.tls_cert is None else "https"
        return [f"{scheme}://{format_address(host, port)}" for port in self.gateway_ports]

    def coordinator_words(self, workers: int) -> list[str]:
        """The coordinator's arguments."""
        return [
            *("coordinator", "--app-name", self.app, "--workers", str(workers), *self._data()),
            *("--host", LOOPBACK, "--port", str(self.coordinator_port)),
            *("--http-host", LOOPBACK, "--http-port", str(self.facts_port)),
            *self.numbers.words(),
            *("--cluster", self.cluster),
        ]

    def worker_words(self, name: str, facts_port: int) -> list[str]:
        """A worker's arguments."""
        facts = ["--http-host", LOOPBACK, "--http-port", str(facts_port)]
        return ["worker", "--name", name, *self._data(), *self._member(), *facts]

    def worker_url(self, facts_port: int) -> str:
        """The address of that worker's facts."""
        return f"http://{LOOPBACK}:{facts_port}"

    def gateway_words(self, name: str, port: int) -> list[str]:
        """A gateway's arguments."""
        words = ["gateway", "--name", name, "--log", self.data.log, "--host", self.host, "--port", str(port)]
        return [*words, *self.front.words(), *self._member()]

    def ingest_words(self, name: str) -> list[str]:
        """The arguments of the process that reads topics of others."""
        return ["ingest", "--name", name, "--log", self.data.log, *self._member()]

    def _data(self) -> list[str]:
        return ["--log", self.data.log, "--store", self.data.store, *words_of(self.data.options)]

    def _member(self) -> list[str]:
        return ["--coordinator", self.coordinator, "--cluster", self.cluster]


def child_environment(secret: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of the children: the secret, and no variable that would change an option of theirs."""
    kept = {name: value for name, value in environment.items() if not name.startswith("STYX_") or name.startswith(KEPT)}
    kept.pop(SECRET_FILE_VARIABLE, None)
    return {**kept, SECRET_VARIABLE: secret}

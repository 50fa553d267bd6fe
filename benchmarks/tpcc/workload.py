"""TPC-C as a workload for the driver: its data set, its requests and its audit, all made of one set of options."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from benchmarks.driver.workload import Audit, Generator, Loading
from benchmarks.tpcc.app import app
from benchmarks.tpcc.audit import audit
from benchmarks.tpcc.generator import TerminalGenerator
from benchmarks.tpcc.population.whole import initial
from benchmarks.tpcc.settings import Settings
from benchmarks.tpcc.streams import stream
from styx.client.base import Client


class TpcC:
    """A `Workload`."""

    name = "tpcc"
    app = app
    app_target = "benchmarks.tpcc.app:app"

    def __init__(self, settings: Settings) -> None:
        self._options = settings
        self.settings: dict[str, Any] = asdict(settings)

    def initial(self) -> Iterable[Loading]:
        """See `Workload.initial`: the rows of clause 4.3.3.1."""
        return initial(self._options)

    def generator(self, client: int, clients: int, seed: int) -> Generator:
        """See `Workload.generator`."""
        return TerminalGenerator(self._options, stream(seed, "client", client, "of", clients))

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        """See `Workload.audit`."""
        return await audit(client, self._options, witnesses)

"""The hotel site as a workload for the driver: its data set, its requests and its audit, made of one set of options."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from benchmarks.deathstar.hotel import app as site
from benchmarks.deathstar.hotel.audit import audit
from benchmarks.deathstar.hotel.data import DataSet
from benchmarks.deathstar.hotel.generator import HotelGenerator
from benchmarks.deathstar.hotel.settings import Settings
from benchmarks.driver.workload import Audit, Generator, Loading
from styx.client.base import Client


class HotelSite:
    """A `Workload`."""

    name = "deathstar.hotel"
    app = site.app
    app_target = f"{site.__name__}:app"

    def __init__(self, settings: Settings) -> None:
        self._options = settings
        self._data = DataSet(settings)
        self.settings: dict[str, Any] = asdict(settings)

    def initial(self) -> Iterable[Loading]:
        """See `Workload.initial`."""
        return self._data.initial()

    def generator(self, client: int, clients: int, seed: int) -> Generator:
        """See `Workload.generator`."""
        rng = random.Random(f"{self.name} {seed} {client} of {clients}")
        return HotelGenerator(self._options, self._data, rng)

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        """See `Workload.audit`."""
        return await audit(client, self._options, witnesses)

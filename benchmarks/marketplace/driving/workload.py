"""The marketplace as a workload for the driver: its data, requests, marks and audit, of one set of options."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from benchmarks.driver.attendant import Attendant
from benchmarks.driver.result import Result
from benchmarks.driver.workload import Audit, Generator, Loading
from benchmarks.marketplace.app import app
from benchmarks.marketplace.audit.driven import judged
from benchmarks.marketplace.driving.generator import MarketplaceGenerator
from benchmarks.marketplace.driving.marks import Marks
from benchmarks.marketplace.driving.report import lines_of, report_of
from benchmarks.marketplace.driving.settings import Settings
from benchmarks.marketplace.driving.witness import record_of
from benchmarks.marketplace.population.whole import initial
from benchmarks.marketplace.provider.own import read_book
from styx.client.base import Client


class Marketplace:
    """A `Workload`, and `Attended`. `provider` is the address of the payment provider whose book the audit reads, empty
    if there is none.
    """

    name = "marketplace"
    app = app
    app_target = "benchmarks.marketplace.app:app"

    def __init__(self, settings: Settings, provider: str = "") -> None:
        self._options = settings
        self._provider = provider
        self.settings: dict[str, Any] = settings.shown()

    def initial(self) -> Iterable[Loading]:
        """See `Workload.initial`."""
        return initial(self.app, self._options)

    def generator(self, client: int, clients: int, seed: int) -> Generator:
        """See `Workload.generator`."""
        return MarketplaceGenerator(self._options, client, clients, seed)

    def attendant(self) -> Attendant:
        """See `Attended.attendant`."""
        return Marks(self._options.run)

    def notes(self, result: Result, witnesses: list[Any]) -> list[str]:
        """See `Attended.notes`."""
        epoch_s = self._options.epoch
        report = report_of(record_of(witnesses), epoch_s)
        return lines_of(report, self._options.mixed.planned, result.plan.warm_up_s, epoch_s)

    async def audit(self, client: Client, witnesses: list[Any]) -> Audit:
        """See `Workload.audit`."""
        book = await asyncio.to_thread(read_book, self._provider) if self._provider else None
        return await judged(client, self.app, self.initial(), record_of(witnesses), book)

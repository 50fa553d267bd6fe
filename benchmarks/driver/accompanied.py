"""Clients with company: something that goes on beside a run, on the run's own clock. What it does is the caller's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from benchmarks.driver.clients import Clients, Tell
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Mark
from benchmarks.driver.reports import RunReport

Company = Callable[[float, list[Mark]], Coroutine[Any, Any, None]]
"""Is given the window's start in `time.monotonic` seconds, which is to come, and where to mark what happened. It is
cancelled when the run has ended.
"""


class Accompanied:
    """`Clients` that start `company` with each run; `marks` are those of all runs."""

    def __init__(self, clients: Clients, company: Company) -> None:
        self.marks: list[Mark] = []
        self._clients = clients
        self._company = company

    @property
    def pids(self) -> list[int]:
        """As `Clients.pids`."""
        return self._clients.pids

    async def run(self, plan: LoadPlan, start_s: float, tell: Tell) -> RunReport:
        """As `Clients.run`; raises what the company raised, too."""
        company = asyncio.create_task(self._company(start_s + plan.warm_up_s, self.marks))
        try:
            return await self._clients.run(plan, start_s, tell)
        finally:
            company.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await company

    async def witnesses(self) -> list[Any]:
        """As `Clients.witnesses`."""
        return await self._clients.witnesses()

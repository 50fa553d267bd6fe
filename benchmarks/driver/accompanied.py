"""Clients with company: an activity beside a run, on the run's clock. The caller provides the activity."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from benchmarks.driver.clients import Clients, Tell
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Mark
from benchmarks.driver.reports import RunReport
from benchmarks.driver.sending import GaveUp

Company = Callable[[float, list[Mark]], Coroutine[Any, Any, None]]
"""Gets the future start of the window, in `time.monotonic` seconds, and the list to add its marks to. The end of the
run cancels it.
"""


class Accompanied:
    """`Clients` that start `company` with each run. `marks` has the marks of all runs."""

    def __init__(self, clients: Clients, company: Company) -> None:
        self.marks: list[Mark] = []
        self._clients = clients
        self._company = company

    @property
    def pids(self) -> list[int]:
        """See `Clients.pids`."""
        return self._clients.pids

    async def run(self, plan: LoadPlan, start_s: float, tell: Tell, gave_up: GaveUp) -> RunReport:
        """See `Clients.run`; raises what the company raised, too."""
        company = asyncio.create_task(self._company(start_s + plan.warm_up_s, self.marks))
        try:
            return await self._clients.run(plan, start_s, tell, gave_up)
        finally:
            company.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await company

    async def witnesses(self) -> list[Any]:
        """See `Clients.witnesses`."""
        return await self._clients.witnesses()

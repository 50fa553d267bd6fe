"""A measurement: what is read of the processes belongs to the window, whenever the clients are done."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from benchmarks.driver.clients import Tell
from benchmarks.driver.measure import START_LEAD_SECONDS, measure
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Probe
from benchmarks.driver.reports import RunReport
from benchmarks.driver.sending import GaveUp
from styx.testing.patience import PATIENCE_SECONDS

PLAN = LoadPlan(rate=1, warm_up_s=0.05, duration_s=0.2)


class Clients:
    """Done at once, or when `until` is set. They give up at once if their report says so."""

    def __init__(self, report: RunReport, until: asyncio.Event | None = None, give_up_s: float = 0.0) -> None:
        self._report = report
        self._until = until
        self._give_up_s = give_up_s

    @property
    def pids(self) -> list[int]:
        return []

    async def run(self, plan: LoadPlan, start_s: float, tell: Tell, gave_up: GaveUp) -> RunReport:
        if self._report.gave_up:
            await asyncio.sleep(self._give_up_s)
            gave_up(self._report.gave_up)
        if self._until is not None:
            await self._until.wait()
        return self._report

    async def witnesses(self) -> list[Any]:
        return []


class SlowProbe(Probe):
    """Its reading of counters takes its time."""

    def __init__(self) -> None:
        super().__init__(lambda: {"self": [os.getpid()]})
        self.ended = asyncio.Event()
        self.ends = 0

    async def end(self) -> None:
        await asyncio.sleep(0.05)
        await super().end()
        self.ends += 1
        self.ended.set()


def test_clients_that_are_done_early_do_not_cut_the_reading_short() -> None:
    async def main() -> None:
        probe = SlowProbe()
        measured = await measure(Clients(RunReport()), PLAN, probe)
        assert probe.ends == 1
        assert measured.probe.machine.seconds >= PLAN.duration_s
        assert measured.probe.roles["self"].processes == 1

    asyncio.run(main())


def test_a_run_given_up_before_its_window_still_has_figures() -> None:
    async def main() -> None:
        probe = SlowProbe()
        measured = await measure(Clients(RunReport(gave_up="hopeless")), PLAN, probe)
        usage = measured.probe.roles["self"]
        assert (usage.processes, usage.cpu_s, usage.cores, measured.probe.machine.seconds) == (1, 0, 0, 0)

    asyncio.run(main())


def test_the_window_ends_when_clients_give_up_though_they_still_wait_for_replies() -> None:
    async def main() -> None:
        probe = SlowProbe()
        plan = LoadPlan(rate=1, warm_up_s=0.01, duration_s=10 * PATIENCE_SECONDS)
        clients = Clients(RunReport(gave_up="hopeless"), until=probe.ended, give_up_s=START_LEAD_SECONDS + 0.3)
        async with asyncio.timeout(PATIENCE_SECONDS):
            measured = await measure(clients, plan, probe)
        assert probe.ends == 1
        assert 0 < measured.probe.machine.seconds < PATIENCE_SECONDS

    asyncio.run(main())


def test_the_window_ends_though_clients_still_wait_for_replies() -> None:
    async def main() -> None:
        probe = SlowProbe()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await measure(Clients(RunReport(), until=probe.ended), PLAN, probe)
        assert probe.ends == 1

    asyncio.run(main())

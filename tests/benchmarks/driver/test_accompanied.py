"""What goes on beside a run begins and ends with it, and its failure is the run's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from benchmarks.driver.accompanied import Accompanied, Company
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Mark
from benchmarks.driver.reports import RunReport

REPORT = RunReport(sent=3)


class Clients:
    @property
    def pids(self) -> list[int]:
        return [7]

    async def run(self, _plan: LoadPlan, _start_s: float, _tell: Any, _gave_up: Any) -> RunReport:
        for _ in range(3):
            await asyncio.sleep(0)
        return REPORT

    async def witnesses(self) -> list[Any]:
        return ["seen"]


MARK = Mark(at_s=1.0, what="here")


def ran(company: Company) -> tuple[RunReport, list[Mark]]:
    clients = Accompanied(Clients(), company)
    assert clients.pids == [7]
    assert asyncio.run(clients.witnesses()) == ["seen"]
    return asyncio.run(
        clients.run(LoadPlan(rate=1, warm_up_s=2.0), 10.0, lambda _: None, lambda _: None)
    ), clients.marks


def test_it_is_told_when_the_window_begins_and_ends_with_the_run() -> None:
    seen: list[Any] = []

    async def company(from_s: float, marks: list[Mark]) -> None:
        seen.append(from_s)
        marks.append(MARK)
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    assert ran(company) == (REPORT, [MARK])
    assert seen == [12.0, "cancelled"]


def test_its_failure_is_not_lost() -> None:
    async def company(_from_s: float, _marks: list[Mark]) -> None:
        raise OSError("no more processes")

    with pytest.raises(OSError, match="no more processes"):
        ran(company)

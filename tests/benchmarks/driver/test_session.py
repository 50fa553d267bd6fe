"""A session on a deployment that is not there: what becomes part of a result beside what clients report."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import nullcontext
from typing import cast

from benchmarks.driver.accompanied import Company
from benchmarks.driver.clients import Clients
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Mark
from benchmarks.driver.reports import RunReport
from benchmarks.driver.result import Result, SearchResult
from benchmarks.driver.search import SLOW_REPEATS_MAX, RateSearch
from benchmarks.driver.session import Generators, Session, search
from benchmarks.driver.summary import search_summary
from benchmarks.driver.worker_death import KILLED
from styx.client.base import Client
from tests.benchmarks.driver.counting import make_workload
from tests.benchmarks.driver.made import result
from tests.benchmarks.driver.test_measure import Clients as ClientsHere

PLAN = LoadPlan(rate=1, warm_up_s=0.05, duration_s=0.1)


def session() -> Session:
    options = argparse.Namespace(forget=0)
    deployment = Deployment(facts={"kind": "none"}, open_client=lambda: nullcontext(cast(Client, None)), pids=dict)
    return Session(
        make_workload(options), Generators(make_workload, options), deployment, lambda _, __: None, lambda _: None
    )


def test_marks_of_a_runs_company_are_the_results_in_their_order() -> None:
    marked = asyncio.Event()

    async def company(_from_s: float, marks: list[Mark]) -> None:
        marked.set()
        marks += [Mark(at_s=0.06, what="late"), Mark(at_s=0.04, what=KILLED)]

    marked_run = asyncio.run(session().measure(ClientsHere(RunReport(), until=marked), PLAN, company))
    assert [mark.what for mark in marked_run.marks] == [KILLED, "late"]
    assert marked_run.death is not None
    assert marked_run.death.killed_s == 0.04


def test_without_company_nobody_died() -> None:
    alone = asyncio.run(session().measure(ClientsHere(RunReport()), PLAN))
    assert alone.marks == []
    assert alone.death is None


class Paced(Session):
    """Its runs come from a list: the rate that was held, and how slow the machine was."""

    def __init__(self, runs: Iterator[tuple[float, float]]) -> None:
        self.__dict__ = session().__dict__
        self.said: list[str] = []
        self.say = self.said.append
        self._runs = runs

    async def measure(self, clients: Clients, plan: LoadPlan, company: Company | None = None) -> Result:
        held, slower = next(self._runs)
        made = result(plan.rate, 5_000 if plan.rate <= held else 2_000_000)
        made.best_ms = 40 / slower
        return made


def searched(rates: RateSearch, *runs: tuple[float, float]) -> tuple[SearchResult, list[str]]:
    paced = Paced(iter(runs))
    found = asyncio.run(search(paced, ClientsHere(RunReport()), rates, 1.0, lambda rate: LoadPlan(rate=rate)))
    return found, paced.said


def test_a_step_that_failed_in_a_slow_phase_says_nothing_about_its_rate() -> None:
    steps = ((50, 2.0), (400, 1.0), (400, 1.0), (400, 1.0), (400, 1.0), (400, 1.0))
    found, said = searched(RateSearch(100, precision=1.0), *steps)
    assert [(step.rate, step.repeated) for step in found.steps][:3] == [(100, True), (100, False), (200, False)]
    assert found.rate == 400
    assert "a slow phase (x2.00" in said[0]
    assert said[0].endswith("repeated")
    assert "1 of 5 steps were in a slow phase" in search_summary(found)


def test_a_machine_that_stays_slow_does_not_keep_a_search_from_its_end() -> None:
    found, _ = searched(RateSearch(1, precision=1.0), *[(0.0, 2.0)] * (SLOW_REPEATS_MAX + 1))
    assert [step.repeated for step in found.steps] == [True] * SLOW_REPEATS_MAX + [False]
    assert found.ended == "even 1/s is too much"

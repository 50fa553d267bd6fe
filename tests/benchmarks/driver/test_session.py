"""A session on a deployment that is not there: what becomes part of a result beside what clients report."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import nullcontext
from typing import cast

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Mark
from benchmarks.driver.reports import RunReport
from benchmarks.driver.session import Generators, Session
from benchmarks.driver.worker_death import KILLED
from styx.client.base import Client
from tests.benchmarks.driver.counting import make_workload
from tests.benchmarks.driver.test_measure import Clients

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

    result = asyncio.run(session().measure(Clients(RunReport(), until=marked), PLAN, company))
    assert [mark.what for mark in result.marks] == [KILLED, "late"]
    assert result.death is not None
    assert result.death.killed_s == 0.04


def test_without_company_nobody_died() -> None:
    result = asyncio.run(session().measure(Clients(RunReport()), PLAN))
    assert result.marks == []
    assert result.death is None

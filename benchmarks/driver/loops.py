"""The loop that a plan asks for."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.driver.closed_loop import ClosedLoop
from benchmarks.driver.open_loop import OpenLoop
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.reports import Progress
from benchmarks.driver.sending import GaveUp, Sending, told_nobody
from benchmarks.driver.target import Target
from benchmarks.driver.workload import Generator


def loop_of(
    target: Target,
    generator: Generator,
    plan: LoadPlan,
    client: int,
    start_s: float,
    tell: Callable[[Progress], None],
    gave_up: GaveUp = told_nobody,
) -> Sending:
    """A run of one client: closed if the plan has a concurrency, otherwise open."""
    kind = OpenLoop if plan.concurrency is None else ClosedLoop
    return kind(target, generator, plan, client, start_s, tell, gave_up)

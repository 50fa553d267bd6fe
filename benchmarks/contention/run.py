"""One run on a place: the open loop, its figures, and the check of the whole history."""

from __future__ import annotations

import asyncio
import time
from typing import Final, NamedTuple

from benchmarks.contention.programs import Programs
from benchmarks.driver.carries import Carries, carries
from benchmarks.driver.latency import Cells, merge, percentile_us
from benchmarks.driver.open_loop import OpenLoop
from benchmarks.driver.place import IN_FLIGHT_MAX, Place
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import ENGINES, Probe
from benchmarks.driver.reports import Progress
from benchmarks.driver.styx_target import ClientTarget
from benchmarks.driver.target import ANSWERED, Outcome
from styx.client.base import Client
from styx.testing.history import SerializabilityViolation

FIRST_SECONDS: Final = 0.1
"""From the start to the first request's intended time."""


class Figures(NamedTuple):
    """`sent`, `outcomes` and `latency` are of the requests due behind the warm-up, all else is of all requests.
    Latencies count from the intended time of sending, aborted transactions included. `seconds` from the end of the
    warm-up to the last reply; `cpu_s` is the processor time of the engine. `silent` names each request without a reply,
    `wrong` says what the history's check found.
    """

    sent: int
    outcomes: dict[Outcome, int]
    latency: Cells
    late: Cells
    seconds: float
    cpu_s: float
    locked: int
    carries: Carries
    silent: list[str]
    wrong: str

    @property
    def throughput(self) -> float:
        """Answered requests a second."""
        return sum(self.outcomes.get(each, 0) for each in ANSWERED) / self.seconds

    @property
    def p99_s(self) -> float:
        """The latency that 99 of 100 requests did not exceed, in seconds; infinite if one has no reply."""
        return float("inf") if self.silent else percentile_us(self.latency, 99) / 1e6


def plan_of(rate: float, warm_up_s: float, seconds: float, timeout_s: float, seed: int) -> LoadPlan:
    """The open loop's plan; raises `ConfigurationError`."""
    plan = LoadPlan(
        rate=rate,
        duration_s=seconds,
        warm_up_s=warm_up_s,
        drain_s=timeout_s,
        arrivals="poisson",
        in_flight_max=IN_FLIGHT_MAX - 1,
        seed=seed,
    )
    plan.check()
    return plan


async def measured(place: Place, client: Client, programs: Programs, plan: LoadPlan) -> Figures:
    """Sends the programs as planned, waits for their replies, and checks everything."""
    target = ClientTarget(lambda: client, plan.drain_s)
    probe = Probe(place.deployment.pids)
    await probe.begin()
    start_s = time.monotonic() + FIRST_SECONDS
    report = await OpenLoop(target, programs, plan, 0, start_s, _untold).run()
    seconds = time.monotonic() - start_s - plan.warm_up_s
    await probe.end()
    records = await asyncio.to_thread(place.epochs)
    latency: Cells = {}
    for by_outcome in report.latency.values():
        for outcome, cells in by_outcome.items():
            if outcome in ANSWERED:
                merge(latency, cells)
    return Figures(
        sent=report.sent,
        outcomes=report.outcomes,
        latency=latency,
        late=report.late,
        seconds=seconds,
        cpu_s=probe.cpu_s(ENGINES),
        locked=sum(reply.phase == 2 for reply in programs.replies),
        carries=carries(records, programs.replies, place.n_slots),
        silent=programs.names_of_silent(),
        wrong=await _checked(place, programs),
    )


async def _checked(place: Place, programs: Programs) -> str:
    try:
        await place.history(programs.replies)
    except (SerializabilityViolation, TimeoutError) as failure:
        return str(failure)
    return ""


def _untold(progress: Progress) -> None:
    """A run of some seconds needs no line of progress."""

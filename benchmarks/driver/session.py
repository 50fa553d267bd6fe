"""A session on a running deployment: load, measure, search, audit. The subcommands are made of it."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.driver.accompanied import Accompanied, Company
from benchmarks.driver.attendant import Watching, attended
from benchmarks.driver.best_speed import best_ms
from benchmarks.driver.clients import ClientHere, ClientProcesses, Clients
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.loading import load
from benchmarks.driver.measure import Tell, measure
from benchmarks.driver.pace import Pace, pace_in
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Probe
from benchmarks.driver.result import Result, SearchResult, Step, result_of
from benchmarks.driver.search import SLOW_REPEATS_MAX, THROUGHPUT_SHARE_MIN, Rates, reasons_against
from benchmarks.driver.sql_target import ReplicaTarget, ReplicaTargets
from benchmarks.driver.target import ANSWERED
from benchmarks.driver.workload import Audit, Generator, Workload
from styx.model.function_spec import READ_FUNCTION

LOAD_SECONDS_MAX: Final = 60.0
"""The time limit of one chunk of the data set."""
TOLD_SECONDS: Final = 1.0
CLIENT_ROLE: Final = "client"

Say = Callable[[str], None]
MakeWorkload = Callable[[argparse.Namespace], Workload]


@dataclass(frozen=True)
class Generators:
    """A `GeneratorFactory`. It makes the workload in the calling process, by `make_workload(options)`."""

    make_workload: MakeWorkload
    options: argparse.Namespace

    def __call__(self, client: int, clients: int, seed: int) -> Generator:
        return self.make_workload(self.options).generator(client, clients, seed)


class Session:
    """A workload on a deployment. `tell` gets the progress of runs, `say` all other messages."""

    def __init__(
        self, workload: Workload, generators: Generators, deployment: Deployment, tell: Tell, say: Say
    ) -> None:
        self.workload = workload
        self.deployment = deployment
        self._generators = generators
        self.say = say
        self._tell = tell
        self._answered = 0
        self._loaded = 0  # the epoch

    async def load(self) -> None:
        """Loads the data set, and replaces entities that exist. Raises `LoadFailed`."""
        async with self.deployment.open_client() as client:
            for loading in self.workload.initial():
                pairs = _told(loading.pairs, loading.size, loading.name, self.say)
                started_s = time.monotonic()
                await load(client, loading._replace(pairs=pairs), LOAD_SECONDS_MAX)
                seconds = time.monotonic() - started_s
                self.say(f"loaded {loading.size} {loading.name} in {seconds:.1f} s")
            if self.deployment.replica:
                first = next(iter(self.workload.initial()))
                reply = await client.request(first.operator, next(iter(first.pairs))[0], READ_FUNCTION)
                self._loaded = reply.epoch - 1

    @asynccontextmanager
    async def clients(self, plan: LoadPlan, timeout_s: float) -> AsyncIterator[Clients]:
        """Connected, as many as the plan has."""
        deployment = self.deployment
        make_target, replica = deployment.make_target, deployment.replica
        if make_target is None:
            assert deployment.target_here is not None
            target, generator = deployment.target_here(timeout_s), self._generators(0, 1, plan.seed)
            if not replica:
                yield ClientHere(target, generator)
                return
            beside = ReplicaTarget(target, replica, timeout_s, self._loaded)
            try:
                await beside.open()
                yield ClientHere(beside, generator)
            finally:
                await beside.leave()
            return
        if replica:
            make_target = ReplicaTargets(make_target, replica, self._loaded)
        async with ClientProcesses(
            plan.clients,
            make_target,
            self._generators,
            timeout_s=timeout_s,
            in_flight_max=plan.in_flight_max,
            seed=plan.seed,
        ) as clients:
            yield clients

    def attended(self) -> AbstractAsyncContextManager[Watching]:
        """The workload's attendant at work, if it has one."""
        return attended(self.workload, self.deployment.open_client())

    async def measure(self, clients: Clients, plan: LoadPlan, company: Company | None = None) -> Result:
        """One run. If there is `company`, the marks come from it."""
        if company is None:
            measured = await measure(clients, plan, self.probe(clients), self._tell)
        else:
            accompanied = Accompanied(clients, company)
            measured = await measure(accompanied, plan, self.probe(clients), self._tell)
            marks = sorted(accompanied.marks, key=lambda mark: mark.at_s)
            measured = measured._replace(marks=marks)
        for outcomes in (measured.report.outcomes, measured.report.outside):
            self._answered += sum(outcomes.get(outcome, 0) for outcome in ANSWERED)
        result = result_of(measured, self.workload.name, self.workload.settings, dict(self.deployment.facts))
        result.best_ms = best_ms(result.environment, result.calibration)
        return result

    def probe(self, clients: Clients) -> Probe:
        """The PIDs of the deployment's processes and of the clients."""
        deployment = self.deployment

        def pids() -> Mapping[str, Sequence[int]]:
            own = {CLIENT_ROLE: clients.pids} if clients.pids else {}
            return {**own, **deployment.pids()}

        return Probe(pids, deployment.urls, deployment.own)

    async def audit(self, witnesses: list[Any]) -> Audit:
        """The workload's audit of the state."""
        async with self.deployment.open_client() as client:
            return await self.workload.audit(client, witnesses)

    async def replies_end(self) -> dict[int, int]:
        """The present ends of the replies, for `duplicated`."""
        replies = self.deployment.replies
        return {} if replies is None else await asyncio.to_thread(replies.ends)

    async def duplicated(self, since: dict[int, int]) -> int | None:
        """The replies given twice since then, over all measurements. None if a second reply is impossible, or the
        replies have been deleted.
        """
        if self.deployment.replies is None:
            return None
        replies = await asyncio.to_thread(self.deployment.replies.since, since)
        distinct = replies.read - replies.repeated
        if distinct < self._answered:
            self.say(
                f"the replies topic holds {distinct} of {self._answered} replies, the others were released: "
                "whether one came twice is not known"
            )
            return None
        return replies.repeated


async def search(
    session: Session,
    clients: Clients,
    rates: Rates,
    bound_s: float,
    plan_at: Callable[[float], LoadPlan],
    throughput_share: float = THROUGHPUT_SHARE_MIN,
) -> SearchResult:
    """Runs steps until there is no next rate. `reasons_against` decides whether a step passes. Requests under way at
    the end of a step end before the next step. A step that failed in a slow phase of the machine says nothing about the
    rate, and is repeated.
    """
    steps: list[Step] = []
    slow: Counter[float] = Counter()
    while (rate := rates.next_rate()) is not None:
        result = await session.measure(clients, plan_at(rate))
        step = Step(rate=rate, reasons=reasons_against(result, bound_s, throughput_share), result=result)
        pace = pace_in(result)
        if step.reasons and pace.slow and slow[rate] < SLOW_REPEATS_MAX:
            slow[rate] += 1
            step.repeated = True
        else:
            rates.record(rate, passed=not step.reasons)
        session.say(f"{rate:g}/s: {'; '.join(step.reasons) or 'passed'}{_told_pace(pace, step.repeated)}")
        steps.append(step)
    return SearchResult(
        workload=session.workload.name,
        settings=session.workload.settings,
        deployment=session.deployment.facts,
        bound_s=bound_s,
        rate=rates.passed,
        ended=rates.ended,
        steps=steps,
    )


def _told_pace(pace: Pace, repeated: bool) -> str:
    if not pace.slow:
        return ""
    words = f"; a slow phase (x{pace.slower:.2f}, others {pace.others:.0%})"
    return f"{words}, repeated" if repeated else words


def _told(pairs: Iterable[tuple[Any, Any]], size: int, name: str, say: Say) -> Iterator[tuple[Any, Any]]:
    """The pairs. From time to time it reports how many were taken."""
    next_s = time.monotonic() + TOLD_SECONDS
    for number, pair in enumerate(pairs):
        if number % 1_000 == 0 and time.monotonic() >= next_s:
            next_s = time.monotonic() + TOLD_SECONDS
            say(f"loading {name}: {number} of {size}")
        yield pair

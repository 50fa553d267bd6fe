"""A subject: one kind of load on one deployment, measured step by step. Several subjects may share a deployment. At the
end the state of the deployment is compared with the replies to all clients.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final, NamedTuple

from benchmarks.driver.accompanied import Company
from benchmarks.driver.clients import Clients
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.plan import TIMEOUT_SECONDS_DEFAULT, LoadPlan
from benchmarks.driver.result import Result
from benchmarks.driver.search import THROUGHPUT_SHARE_MIN, reasons_against
from benchmarks.driver.session import Generators, Session
from benchmarks.driver.workload import Workload
from benchmarks.experiments.bench import Bench, Step, StepFailed
from benchmarks.experiments.climb import Climb
from benchmarks.experiments.spread.workload import Spread
from benchmarks.experiments.warming import Warming
from benchmarks.reference.echo_workload import Echoed
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT

BROKER: Final = "broker"
"""The role of Kafka's process."""
BOUND_SECONDS: Final = 1.0
"""The bound on p99 at a rate that a subject holds."""
IN_FLIGHT_MAX: Final = 100_000
"""The limit in flight of one client: more than any subject can have within the bound."""
SATURATED_IN_FLIGHT_MIN: Final = 2_000
"""The least number of requests under way, over all clients, at saturation."""
SATURATED_SECONDS: Final = 0.4
"""At saturation, as many requests are under way as the subject answered in this time before. That is well within the
bound, and enough for large batches.
"""
SATURATING_RATE: Final = 200_000.0
"""A rate above that of any subject. Requests above the limit in flight are not sent."""
GUESS_SHARE: Final = 0.9
"""Of the saturated throughput: where the search for the highest rate begins."""
FINE_SECONDS: Final = 0.1
"""The resolution of a window that is shown over time."""


class Load(NamedTuple):
    """A workload's options under a name; `echoed`: for an echo, which has no state. With several `clusters` they are
    each one's, and the deployment is spread over as many.
    """

    name: str
    settings: Settings
    echoed: bool = False
    clusters: int = 1


class Subject:
    """Made by `subjects`."""

    def __init__(self, bench: Bench, name: str, session: Session, clients: Clients, check: Callable[[], None]) -> None:
        self.name = name
        self._bench = bench
        self._session = session
        self._clients = clients
        self._check = check
        self._guess = 0.0
        """Requests a second that it may hold, as far as is known."""

    async def run(
        self, rate: float, *, give_up_s: float | None = None, in_flight: int = IN_FLIGHT_MAX, longer: float = 1.0
    ) -> Result:
        """One window at `rate` requests a second; it and its warm-up are `longer` times as long as the options say."""
        common = self._bench.common
        plan = LoadPlan(
            rate=rate,
            duration_s=longer * common.window_s,
            warm_up_s=longer * common.warm_up_s,
            clients=common.clients,
            in_flight_max=in_flight,
            give_up_s=give_up_s,
        )
        result = await self._measured(plan)
        for mark in result.marks:
            if mark.what == "recovery":
                self._bench.say(f"{self.name}: a worker was given up and came back in this step")
        return result

    async def over_time(self, rate: float, seconds: float, company: Company) -> Result:
        """One window of `seconds` at `rate` with a fine time line. Its marks are those of `company`."""
        common = self._bench.common
        plan = LoadPlan(
            rate=rate,
            duration_s=seconds,
            warm_up_s=common.warm_up_s,
            interval_s=FINE_SECONDS,
            clients=common.clients,
            in_flight_max=IN_FLIGHT_MAX,
        )
        result = await self._measured(plan, company)
        self._bench.say(f"{self.name} at {rate:.0f}/s for {seconds:g} s: {shown(result)}")
        return result

    async def _measured(self, plan: LoadPlan, company: Company | None = None) -> Result:
        result = await self._session.measure(self._clients, plan, company)
        self._check()
        self._bench.steps.append(Step(subject=self.name, result=result))
        return result

    async def saturated(self, longer: float = 1.0) -> Result:
        """One window with so many requests under way all the time that its throughput is what there is; `longer` as
        in `run`.
        """
        wanted = max(SATURATED_IN_FLIGHT_MIN, self._guess * SATURATED_SECONDS)
        in_flight = int(wanted / self._bench.common.clients)
        result = await self._bench.quiet(partial(self.run, SATURATING_RATE, in_flight=in_flight, longer=longer))
        self._bench.say(f"{self.name} saturated: {result.throughput:.0f}/s, {shown(result)}")
        return result

    async def warmed(self) -> float:
        """Transactions a second when `saturated`, after steps that do not count: `Warming` tells how many."""
        common, warming, throughput = self._bench.common, Warming(), 0.0
        while warming.goes_on:
            result = await self.saturated()
            self._guess = throughput = result.throughput
            warming.record(result.cpu_us.get(BROKER), common.warm_up_s + common.window_s)
        self._guess = GUESS_SHARE * throughput
        return throughput

    async def at(self, rate: float) -> Result:
        """One step at a rate that is given. Raises `StepFailed` if less was answered, time and again."""
        tries = 1 + self._bench.common.repeats
        while True:
            result = await self._bench.quiet(partial(self.run, rate))
            held = result.throughput >= THROUGHPUT_SHARE_MIN * result.offered_rate
            self._bench.say(f"{self.name} at {rate:.0f}/s: {'' if held else 'NOT HELD, '}{shown(result)}")
            if held:
                return result
            tries -= 1
            if not tries:
                raise StepFailed(f"{self.name}: only {result.throughput:.0f}/s answered of {rate:.0f}/s")

    async def tried(self, rate: float, worth_repeating: Callable[[Result], bool] = lambda _: True) -> Result:
        """One step at a rate that it may hold or not: `reasons_against` tells. It ends early where that is hopeless."""
        result = await self._bench.quiet(partial(self.run, rate, give_up_s=BOUND_SECONDS), worth_repeating)
        reasons = reasons_against(result, BOUND_SECONDS)
        self._bench.say(f"{self.name} at {rate:.0f}/s: {'; '.join(reasons) or 'held'}, {shown(result)}")
        return result

    def expect(self, rate: float) -> None:
        """It may hold `rate`, as far as is known from something like it: where `highest_rate` begins."""
        self._guess = rate

    async def highest_rate(self) -> float:
        """The highest rate with p99 under `BOUND_SECONDS`, nothing missed, nothing shed. Raises `StepFailed`."""
        if not self._guess:
            await self.warmed()
        climb = Climb(self._guess)

        def failed(result: Result) -> bool:
            return bool(reasons_against(result, BOUND_SECONDS))

        while (rate := climb.next_rate()) is not None:
            climb.record(not failed(await self.tried(rate, failed)))
        if not climb.passed:
            raise StepFailed(f"{self.name}: no rate that was tried, from {self._guess:.0f}/s down, was held")
        self._guess = climb.passed
        return climb.passed


@asynccontextmanager
async def subjects(
    bench: Bench,
    deployment: Deployment,
    loads: Sequence[Load],
    *,
    filled: bool = False,
    audited: bool = True,
    check: Callable[[], None] = lambda: None,
) -> AsyncIterator[list[Subject]]:
    """One for each load, on the same accounts: their settings differ only in how requests are drawn.

    The accounts are loaded first, unless they are `filled` in already. `check` raises if the deployment is broken.
    Raises `StepFailed` behind the block if replies were doubled, or the state contradicts them.
    """
    sessions = [_session(bench, deployment, load) for load in loads]
    if not filled:
        await sessions[0].load()
    plan = LoadPlan(rate=1.0, clients=bench.common.clients, in_flight_max=IN_FLIGHT_MAX)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(each.clients(plan, TIMEOUT_SECONDS_DEFAULT)) for each in sessions]
        since = await sessions[0].replies_end()
        yield [
            Subject(bench, load.name, session, each, check)
            for load, session, each in zip(loads, sessions, clients, strict=True)
        ]
        witnesses = [witness for each in clients for witness in await each.witnesses()]
    if audited and bench.common.audit:
        names = " and ".join(load.name for load in loads)
        bench.say(f"{names}: auditing")
        await audit_or_fail(names, sessions[0], witnesses, since)


async def audit_or_fail(names: str, session: Session, witnesses: list[Any], since: dict[int, int]) -> None:
    """Holds the state and the replies since then against what clients have seen; raises `StepFailed`."""
    audit = await session.audit(witnesses)
    if audit.violations:
        raise StepFailed(f"{names}: the audit found: {'; '.join(audit.violations)}")
    duplicated = await session.duplicated(since)
    if duplicated:
        raise StepFailed(f"{names}: {duplicated} replies came twice")


def _session(bench: Bench, deployment: Deployment, load: Load) -> Session:
    make = _echoed if load.echoed else _transfers if load.clusters == 1 else _spread
    options = argparse.Namespace(settings=load.settings, clusters=load.clusters)

    def say(text: str) -> None:
        bench.say(f"{load.name}: {text}")

    return Session(make(options), Generators(make, options), deployment, lambda _, __: None, say)


def _transfers(options: argparse.Namespace) -> Workload:
    return YcsbT(options.settings)


def _spread(options: argparse.Namespace) -> Workload:
    return Spread(options.settings, options.clusters)


def _echoed(options: argparse.Namespace) -> Workload:
    return Echoed(YcsbT(options.settings))


def shown(result: Result) -> str:
    """A step's figures in a line."""
    cpu = ", ".join(f"{role} {us:.1f}" for role, us in sorted(result.cpu_us.items()) if role != "store")
    answered = result.answered
    messages = f"; {result.peer['messages']:.2f} messages each" if result.peer.get("messages") else ""
    return f"p50 {answered.p50_us / 1e3:.1f} ms p99 {answered.p99_us / 1e3:.1f} ms, µs a transaction: {cpu}{messages}"

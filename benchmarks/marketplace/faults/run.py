"""One run under faults: it loads, sends and strikes, waits until all has settled, and reads what is to be audited."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from benchmarks.driver.clients import Clients
from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.own_cluster import BenchmarkCluster, ClusterShape, benchmark_cluster, deployment_of
from benchmarks.driver.measure import START_LEAD_SECONDS, Measurement, measure
from benchmarks.driver.plan import LoadPlan
from benchmarks.driver.probe import Probe
from benchmarks.driver.reports import Progress
from benchmarks.driver.result import Result, result_of
from benchmarks.driver.session import Generators, Session
from benchmarks.driver.styx_target import HttpTargets, KafkaTargets
from benchmarks.driver.summary import ProgressLine
from benchmarks.marketplace.audit.driven import awaits, last_told, loaded_state, terms_here
from benchmarks.marketplace.audit.reading import CannotRead, calls_of, history_of
from benchmarks.marketplace.audit.run import Run
from benchmarks.marketplace.audit.state import State, state_of
from benchmarks.marketplace.driving.witness import record_of
from benchmarks.marketplace.driving.workload import Marketplace
from benchmarks.marketplace.faults.kinds import drawn
from benchmarks.marketplace.faults.memory import Stock
from benchmarks.marketplace.faults.samples import Sample, Sampler, newest
from benchmarks.marketplace.faults.striking import Striker, Struck
from benchmarks.marketplace.faults.two_ways import TwoWays
from benchmarks.marketplace.options import make_workload
from benchmarks.marketplace.provider.own import OwnProvider, read_book
from benchmarks.marketplace.record import Record
from proof.cluster.timed_faults import OnServers

WARM_UP_SECONDS: Final = 3.0
DRAIN_SECONDS: Final = 120.0
SETTLING_SECONDS_MAX: Final = 300.0
"""From the last reply until no payment is under way, and a snapshot has it all."""
PAUSE_SECONDS: Final = 5.0
TOLD_EVERY: Final = 10
"""Seconds between two lines of progress."""

Say = Callable[[str], None]


class Ran(NamedTuple):
    """What a run has left: `run` is to be audited whole, `samples` up to their epochs. `began_s` is the window's start
    (`time.monotonic`), `repeated` are replies that stand in the log twice.
    """

    result: Result
    struck: list[Struck]
    began_s: float
    run: Run
    samples: list[Sample]
    stocks: list[Stock]
    measured: Measurement
    repeated: int


async def ran(options: argparse.Namespace, provider: OwnProvider, directory: Path, say: Say) -> Ran:
    """Runs it. Raises `ChildFailed` if a process ends by itself or does not come back, and `CannotRead`."""
    workload = make_workload(options)
    shape = ClusterShape(options.workers, options.slots, options.snapshot_interval, through_gateway=True)
    async with benchmark_cluster(workload.app_target, workload.app.name, shape, directory) as cluster:
        deployment = _deployment(cluster, provider)
        session = Session(workload, Generators(make_workload, options), deployment, _teller(say), say)
        await session.load()
        plan = _plan(options)
        sampler = Sampler(cluster.open_store, workload.app, directory, options.sample * 60)
        async with session.clients(plan, options.timeout) as clients:
            since = await session.replies_end()
            striker = _striker(options, cluster, provider, sampler, say)
            measured = await _struck(session, clients, plan, striker, options.every, say)
            witnesses = await clients.witnesses()
        assert deployment.replies is not None
        repeated = (await asyncio.to_thread(deployment.replies.since, since)).repeated
        say("the load has ended; reading")
        run, last = await _read(cluster, workload, record_of(witnesses), provider)
    began_s = measured.probe.samples[0].at_s
    stocks = [Stock(each.at_s - began_s, each.entries, each.encoded) for each in sampler.taken]
    return Ran(
        result=result_of(measured, workload.name, workload.settings, dict(deployment.facts)),
        struck=striker.struck,
        began_s=began_s,
        run=run,
        samples=sampler.taken,
        stocks=[*stocks, last._replace(at_s=last.at_s - began_s)],
        measured=measured,
        repeated=repeated,
    )


def _deployment(cluster: BenchmarkCluster, provider: OwnProvider) -> Deployment:
    """With both ways in, and with the provider among its processes."""

    def pids() -> Mapping[str, Sequence[int]]:
        return {**cluster.pids(), "provider": [] if provider.pid is None else [provider.pid]}

    ways = TwoWays(KafkaTargets(cluster.url, cluster.options.name), HttpTargets(cluster.http_url))
    made = deployment_of(cluster)
    return dataclasses.replace(made, make_target=ways, pids=pids, facts={**made.facts, "through": "kafka and gateway"})


def _plan(options: argparse.Namespace) -> LoadPlan:
    return LoadPlan(
        rate=options.rate,
        duration_s=options.minutes * 60,
        warm_up_s=WARM_UP_SECONDS,
        drain_s=DRAIN_SECONDS,
        clients=options.clients,
        seed=options.seed,
    )


def _striker(
    options: argparse.Namespace, cluster: BenchmarkCluster, provider: OwnProvider, sampler: Sampler, say: Say
) -> Striker:
    async def healed(struck: Struck) -> None:
        say(f"{struck.kind:<12} {struck.fault:<20} healed after {struck.healed_s:.1f} s")
        sample = await sampler.look()
        if sample is not None:
            say(f"sampled epoch {sample.epoch}: {sample.entries} entries, {sample.encoded} bytes")

    services = cluster.services
    processes = OnServers(cluster, services.kafka, services.minio, Random(options.seed), lambda: None)
    # Faults are drawn apart, so that their order does not hang on how long they take.
    return Striker(processes, provider, drawn(Random(options.seed), options.kinds), healed)


async def _struck(
    session: Session, clients: Clients, plan: LoadPlan, striker: Striker, every_s: float, say: Say
) -> Measurement:
    """Load and faults at the same time, until both have ended. A striker that fails ends the load."""
    begin_s = time.monotonic() + START_LEAD_SECONDS + plan.warm_up_s
    measuring = asyncio.ensure_future(measure(clients, plan, session.probe(clients), _teller(say)))
    striking = asyncio.ensure_future(striker.run(begin_s, begin_s + plan.duration_s, every_s))
    try:
        await asyncio.wait([measuring, striking], return_when=asyncio.FIRST_EXCEPTION)
        if striking.done():
            striking.result()
        measured = await measuring
        await striking
    finally:
        measuring.cancel()
        striking.cancel()
        await asyncio.wait([measuring, striking])
    return measured


async def _read(
    cluster: BenchmarkCluster, workload: Marketplace, record: Record, provider: OwnProvider
) -> tuple[Run, Stock]:
    """A snapshot in which all has ended, with the log up to it. If something never ends, it gives things as they are
    after a while: the criteria say of which ones.
    """
    before, terms = loaded_state(workload.initial()), terms_here()
    last_epoch = max((asked.place.epoch for asked in record if asked.place is not None), default=0)
    deadline_s = time.monotonic() + SETTLING_SECONDS_MAX
    while True:
        await asyncio.sleep(PAUSE_SECONDS)
        stored = await asyncio.to_thread(newest, cluster.open_store())
        at_s = time.monotonic()
        if stored.epoch < last_epoch:
            if at_s > deadline_s:
                raise CannotRead(f"the newest snapshot is of epoch {stored.epoch}, the last reply of {last_epoch}")
            continue
        async with cluster.client() as client:
            history = (await history_of(client)).until(stored.epoch)
        after: State = state_of(workload.app, stored.entries)
        run = Run(
            before=before,
            after=after,
            history=history,
            record=record,
            mirror=record.mirror,
            terms=terms,
            calls=calls_of(workload.app),
            end=last_told(history),
        )
        if not awaits(run) or at_s > deadline_s:
            break
    book = await asyncio.to_thread(read_book, provider.url)
    stock = Stock(at_s, len(stored.entries), sum(len(data) for _, data in stored.entries))
    return dataclasses.replace(run, book=book), stock


def _teller(say: Say) -> Callable[[Progress, Probe], Any]:
    line = ProgressLine()

    def tell(progress: Progress, probe: Probe) -> None:
        text = line.line(progress, probe)
        if progress.number % TOLD_EVERY == 0:
            say(text)

    return tell

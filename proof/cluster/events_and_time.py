"""The full fault run of events and time: everything that `proof.cluster.timed_app` tells and gives for later, on a
cluster whose processes, broker and store are killed, stopped and frozen, and whose clocks are set forward and back.

    python -m proof.cluster.events_and_time --minutes 10 --burst 100000 --rate 50 --seed 11

The verdict comes from the topics as an ordinary Kafka consumer reads them (`proof.cluster.event_judge`, `call_judge`)
and from a serial execution. The exit status is 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from proof.cluster.audit import AuditFailed, check_told
from proof.cluster.child import ChildFailed
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.given_calls import given_for_later
from proof.cluster.load import LoadOptions, SteadyLoad
from proof.cluster.plain_reader import read_topics
from proof.cluster.services import Server, local_services, working_directory
from proof.cluster.skewed_worker import MODULE
from proof.cluster.timed_app import CLOCKS
from proof.cluster.timed_audit import Verdict, verdict
from proof.cluster.timed_faults import FAULTS, HOUR, Clocks, TimedStage, endless
from proof.cluster.timed_load import give_burst, timed_requests
from proof.cluster.timed_records import Snapshots, read_recorded
from styx.client.connect import connect
from styx.kafka.event_topics import event_topic
from styx.testing.history import SerializabilityViolation
from styx.testing.patience import PATIENCE_SECONDS

APP: Final = "proof.cluster.timed_app:app"
STEADY_SECONDS: Final = 3.0
"""Of undisturbed load behind a fault, at most."""
BURSTS: Final = 3
BURST_DELAY: Final = timedelta(days=1)
"""From a burst's giving until its calls are due. Once all are given, the clocks move on so far."""
BURST_MARGIN: Final = timedelta(hours=2)
"""The clocks move on by so much more than that: they may be an hour wrong."""
REST_SECONDS_MAX: Final = 2 * PATIENCE_SECONDS
"""Limit on the time until everything that was given is done."""


class RunOptions(NamedTuple):
    """`seconds` of faults, `bursts` of so many calls each; `rate` is requests a second."""

    seconds: float
    burst: int
    rate: float
    bursts: int = BURSTS
    snapshots_s: float = 20.0
    faults: tuple[str, ...] = ()
    """These, once each, in place of random ones."""


Tell = Callable[[str], None]


async def run(
    cluster: ClusterUnderTest, kafka: Server, minio: Server, options: RunOptions, rng: Random, tell: Tell
) -> Verdict:
    """Puts a cluster that has not been started through everything, and judges. Raises `SerializabilityViolation`, or
    `ChildFailed` if a process ended by itself.
    """
    clocks = Clocks(cluster.options.directory)
    snapshots = Snapshots(cluster, options.snapshots_s)
    async with AsyncExitStack() as stack:
        await cluster.start()
        through_kafka = await stack.enter_async_context(cluster.client())
        through_http = await stack.enter_async_context(connect(cluster.http_url))
        make = timed_requests(rng, lambda: clocks.ahead_us)
        operators = dict(cluster.app.operators)
        load = SteadyLoad(through_kafka, through_http, operators, make, LoadOptions(rate=options.rate), rng)
        load.start()
        await load.next_reply(PATIENCE_SECONDS)
        looking = asyncio.create_task(snapshots.look_on())
        bursts = asyncio.create_task(_bursts(load, clocks, options, tell))
        stage = TimedStage(cluster, kafka, minio, rng, lambda: None, load=load, clocks=clocks)
        await _strike(stage, options, tell)
        await bursts
        await load.stop()
        tell(f"load has ended: {dict(load.seen)}")
        await _rest(cluster, clocks)
        looking.cancel()
        await asyncio.wait([looking])
    if load.contradictions:
        raise AuditFailed("\n".join(load.contradictions[:5]))
    assert cluster.coordinator is not None
    await cluster.coordinator.stop()  # it has taken a last snapshot then
    cluster.coordinator = None
    tell("everything is done; reading")
    recorded = await asyncio.to_thread(read_recorded, cluster)
    check_told(load.replies, recorded.answers)
    topics = {name: event_topic(cluster.options.name, name) for name in cluster.app.events}
    read = await read_topics(cluster.options.kafka, topics, cluster.options.slots)
    await cluster.end()  # judging takes a processor of its own
    tell(f"{len(read.records):,} records of events, {len(recorded.deliveries):,} deliveries; judging")
    return await asyncio.to_thread(verdict, cluster.app, recorded, read, snapshots, len(load.replies))


async def _bursts(load: SteadyLoad, clocks: Clocks, options: RunOptions, tell: Tell) -> None:
    loop = asyncio.get_running_loop()
    for number in range(options.bursts):
        began_s = loop.time()
        due_us = int(time.time() * 1e6) + clocks.ahead_us + BURST_DELAY // timedelta(microseconds=1)
        await give_burst(load, options.burst, due_us)
        tell(
            f"burst {number + 1} of {options.burst:,} calls was given in {loop.time() - began_s:.1f} s, and is due now"
        )
        clocks.move_on(BURST_DELAY + BURST_MARGIN)
        await asyncio.sleep(max(0.0, options.seconds / options.bursts - (loop.time() - began_s)))


async def _strike(stage: TimedStage, options: RunOptions, tell: Tell) -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    for fault in options.faults or endless(stage.rng):
        if not options.faults and loop.time() - began_s > options.seconds:
            break
        at_s = loop.time()
        await FAULTS[fault](stage)
        await stage.load.next_reply(PATIENCE_SECONDS)
        tell(f"{at_s - began_s:6.0f} s  {fault:<26} a reply {loop.time() - at_s:5.1f} s later")
        await asyncio.sleep(STEADY_SECONDS * stage.rng.random())
        stage.cluster.check()


async def _rest(cluster: ClusterUnderTest, clocks: Clocks) -> None:
    """Lets everything become due, and waits until it is done: only the crons' next ticks wait then."""
    clocks.set(2 * HOUR)
    async with asyncio.timeout(REST_SECONDS_MAX):
        while await asyncio.to_thread(given_for_later, cluster) != CLOCKS:
            cluster.check()
            await asyncio.sleep(0.5)
    await asyncio.sleep(2.0)  # the last marks


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.events_and_time", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of faults (default 10)")
    parser.add_argument("--burst", type=int, default=100_000, help="calls that are due at once (default 100,000)")
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second (default 50)")
    parser.add_argument("--seed", type=int, default=1, help="decides requests and faults (default 1)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--faults", default="", help=f"these, once each, in place of random ones: {', '.join(FAULTS)}")
    given = parser.parse_args(arguments)
    faults = tuple(filter(None, given.faults.split(",")))
    if unknown := [fault for fault in faults if fault not in FAULTS]:
        parser.error(f"there is no fault {unknown[0]!r}; there are {', '.join(FAULTS)}")
    directory = working_directory("events-and-time")
    began_s = time.monotonic()

    def tell(text: str) -> None:
        print(f"[{timedelta(seconds=int(time.monotonic() - began_s))}] {text}", flush=True)

    with local_services() as services:
        name = f"timed-{given.seed}"
        options = cluster_options(name, services.kafka_address, services.s3_endpoint, directory, given.workers)
        wanted = RunOptions(given.minutes * 60, given.burst, given.rate, faults=faults)
        try:
            found = asyncio.run(_in_cluster(options, services.kafka, services.minio, wanted, Random(given.seed), tell))
        except (SerializabilityViolation, ChildFailed) as failure:
            tell(f"FAILED: {failure}")
            return 1
    for line in found.figures:
        tell(line)
    for problem in found.problems[:20]:
        tell(f"wrong: {problem}")
    tell("verdict: " + ("everything once, in order, and not before its time" if not found.problems else "WRONG"))
    return 1 if found.problems else 0


def cluster_options(name: str, kafka: str, s3_endpoint: str, directory: Path, workers: int = 2) -> ClusterOptions:
    """Of a cluster whose clocks can be set."""
    return ClusterOptions(
        app=APP,
        name=name,
        kafka=kafka,
        store=name,
        s3_endpoint=s3_endpoint,
        directory=directory,
        workers=workers,
        worker_module=MODULE,
    )


async def _in_cluster(
    options: ClusterOptions, kafka: Server, minio: Server, wanted: RunOptions, rng: Random, tell: Tell
) -> Verdict:
    async with ClusterUnderTest(options) as cluster:
        return await run(cluster, kafka, minio, wanted, rng, tell)


if __name__ == "__main__":
    sys.exit(main())

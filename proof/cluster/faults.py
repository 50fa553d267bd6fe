"""Fault runs: a cluster of real processes under steady load, broken again and again, and audited in the end.

    python -m proof.cluster.faults --minutes 10 --seed 7

Prints each fault with the longest time without a reply. The exit status is 1 if a promise was broken. The faults are in
`proof.cluster.scenarios`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from proof.cluster.audit import Audit, AuditFailed, audit
from proof.cluster.child import ChildFailed
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest
from proof.cluster.load import LoadOptions, SteadyLoad, chaos_requests
from proof.cluster.scenarios import EARLY, SCENARIOS, Stage
from proof.cluster.services import Service, local_services, working_directory
from styx.client.connect import connect
from styx.testing.history import SerializabilityViolation
from styx.testing.patience import PATIENCE_SECONDS

APP: Final = "proof.chaos_app:app"
NEXT_REPLY_SECONDS_MAX: Final = PATIENCE_SECONDS
"""The longest time without a reply after a fault was mended."""
STEADY_SECONDS: Final = 3.0
"""The time of undisturbed load after each fault."""


class Struck(NamedTuple):
    """A fault that happened, `at_s` seconds after the load began; `silence_s` is the longest time without a reply from
    then on, in seconds. A worker's death begins it, so this is the time to the next reply.
    """

    fault: str
    at_s: float
    silence_s: float
    requests: int


class FaultRun(NamedTuple):
    """The findings of a run; `phases` counts the replies of each phase."""

    struck: list[Struck]
    audit: Audit
    seen: dict[str, int]
    phases: list[int]


async def run_faults(
    cluster: ClusterUnderTest,
    kafka: Service,
    minio: Service,
    faults: Sequence[str],
    rng: Random,
    load_options: LoadOptions,
    tell: Callable[[Struck], None] = lambda _: None,
) -> FaultRun:
    """Puts a cluster that has not been started through `faults`, one after the other, under one load; then audits it.

    Raises `SerializabilityViolation`, or `ChildFailed` if a process ended by itself.
    """
    async with AsyncExitStack() as stack:
        await cluster.start()
        kafka_client = await stack.enter_async_context(cluster.client())
        http_client = await stack.enter_async_context(connect(cluster.http_url))
        load = SteadyLoad(
            kafka_client,
            http_client,
            dict(cluster.app.operators),
            chaos_requests(rng, cluster.options.slots),
            load_options,
            rng,
        )
        began_s = asyncio.get_running_loop().time()
        load.start()
        await load.next_reply(NEXT_REPLY_SECONDS_MAX)
        struck: list[Struck] = []
        for fault in faults:
            struck.append(await _strike(fault, cluster, kafka, minio, load, rng, began_s))
            tell(struck[-1])
        await load.stop()
    if load.contradictions:
        raise AuditFailed("\n".join(load.contradictions))
    phases = Counter(reply.phase for reply in load.replies)
    told = [phases[phase] for phase in range(4)]
    return FaultRun(struck, await audit(cluster, load.replies), dict(load.seen), told)


async def _strike(
    fault: str,
    cluster: ClusterUnderTest,
    kafka: Service,
    minio: Service,
    load: SteadyLoad,
    rng: Random,
    began_s: float,
) -> Struck:
    loop = asyncio.get_running_loop()
    moments: list[float] = []
    stage = Stage(cluster, kafka, minio, rng, lambda: moments.append(loop.time()), load=load)
    if fault != EARLY:
        await asyncio.sleep(STEADY_SECONDS * rng.uniform(0.5, 1.0))
    await SCENARIOS[fault](stage)
    try:
        await load.next_reply(NEXT_REPLY_SECONDS_MAX)
    except TimeoutError:
        tails = "".join(child.tail() for child in cluster.children)
        raise ChildFailed(f"no reply within {NEXT_REPLY_SECONDS_MAX:g} s after the fault {fault}.{tails}") from None
    await asyncio.sleep(STEADY_SECONDS)
    cluster.check()
    at_s = moments[0]
    return Struck(fault, at_s - began_s, longest_silence(load.reply_times, at_s, loop.time()), load.seen["sent"])


def longest_silence(reply_times: Sequence[float], at_s: float, until_s: float) -> float:
    """The longest time without a reply between two moments, in seconds."""
    later = [each for each in reply_times if at_s <= each <= until_s]
    return max(after - before for before, after in pairwise([at_s, *later, until_s]))


def main(arguments: list[str] | None = None) -> int:
    """The command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m proof.cluster.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.0, help="go round the faults for so long (default: once)")
    parser.add_argument("--faults", default=",".join(SCENARIOS), help=f"of: {', '.join(SCENARIOS)} (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="decides requests and victims (default 1)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second (default 100)")
    options = parser.parse_args(arguments)
    faults = options.faults.split(",")
    unknown = [fault for fault in faults if fault not in SCENARIOS]
    if unknown:
        parser.error(f"there is no fault {unknown[0]!r}; there are {', '.join(SCENARIOS)}")
    directory = working_directory("faults")
    deadline_s = time.monotonic() + options.minutes * 60
    rng = Random(options.seed)
    with local_services() as services:
        round_number = 0
        while not round_number or time.monotonic() < deadline_s:
            round_number += 1
            name = f"faults-{options.seed}-{round_number}"
            cluster = ClusterUnderTest(
                ClusterOptions(
                    app=APP,
                    name=name,
                    kafka=services.kafka_address,
                    store=name,
                    s3_endpoint=services.s3_endpoint,
                    directory=directory / name,
                    workers=options.workers,
                )
            )
            print(f"round {round_number}\n{'fault':<24} {'at':>7} {'no reply for':>13} {'requests':>9}", flush=True)
            try:
                asyncio.run(
                    _round(cluster, services.kafka, services.minio, faults, rng, LoadOptions(rate=options.rate))
                )
            except (SerializabilityViolation, ChildFailed) as failure:
                print(f"FAILED: {failure}")
                return 1
    return 0


async def _round(
    cluster: ClusterUnderTest, kafka: Service, minio: Service, faults: list[str], rng: Random, load: LoadOptions
) -> None:
    async with cluster:
        found = await run_faults(cluster, kafka, minio, faults, rng, load, _tell)
    history = found.audit.history
    print(
        f"ok: {found.audit.records} requests, each answered once; {found.audit.acknowledged} replies given to clients, "
        f"all of them recorded; serial replay agrees on {history.committed} commits, {history.aborted} aborts, "
        f"{history.rejected} rejections, {history.repetitions} repetitions, and on the state {history.state_hash}; "
        f"replies of the phases 0 to 3: {', '.join(map(str, found.phases))}",
        flush=True,
    )


def _tell(struck: Struck) -> None:
    print(f"{struck.fault:<24} {struck.at_s:>6.1f}s {struck.silence_s:>12.2f}s {struck.requests:>9}", flush=True)


if __name__ == "__main__":
    sys.exit(main())

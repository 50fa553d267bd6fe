"""One run: a cluster of real processes under a steady load, a fault in each period, and `styx audit` that follows.

The load decides nothing, and no reply is looked at here: whether the epochs give the same again, the audit says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from random import Random
from typing import Final, NamedTuple

from benchmarks.audited.findings import Findings, findings
from benchmarks.audited.follower import Follower
from benchmarks.audited.loads import Load
from benchmarks.driver.loading import load as load_data
from proof.cluster.load import LoadOptions, SteadyLoad
from proof.cluster.scenarios import OF_PROCESSES
from proof.cluster.timed_faults import OF_SERVERS, PLANNED, OnServers
from styx.client.connect import connect

FAULTS: Final[dict[str, Callable[[OnServers], Awaitable[None]]]] = {
    **{name: fault for name, fault in OF_PROCESSES.items() if name not in PLANNED},
    **OF_SERVERS,
}
"""By name."""

Say = Callable[[str], None]


class Wanted(NamedTuple):
    """`rate` is requests a second; a fault strikes each `every_s` seconds, for `seconds` in all."""

    seconds: float
    every_s: float
    rate: float


class Ran(NamedTuple):
    """`replies` are those that clients got, `struck` the faults, in their order."""

    found: Findings
    replies: int
    struck: list[str]


def endless(rng: Random, names: list[str]) -> Iterator[str]:
    """The faults in random order, again and again."""
    while True:
        yield from rng.sample(names, len(names))


async def ran(load: Load, processes: OnServers, faults: Iterator[str], wanted: Wanted, say: Say) -> Ran:
    """Runs it on the cluster of `processes`, which has not been started, and ends it. Raises `ChildFailed` if a process
    ends by itself, or does not come back.
    """
    cluster = processes.cluster
    async with cluster, AsyncExitStack() as stack:
        await cluster.start()
        kafka = await stack.enter_async_context(cluster.client())
        http = await stack.enter_async_context(connect(cluster.http_url, cluster.app))
        for each in load.initial():
            await load_data(kafka, each)
        rng = processes.rng
        requests = load.requests(rng, cluster.options.slots)
        steady = SteadyLoad(kafka, http, dict(cluster.app.operators), requests, LoadOptions(wanted.rate), rng)
        steady.start()
        audit = await cluster.start_audit("--follow")
        stack.push_async_callback(audit.kill)
        follower = Follower(audit)
        struck = await _struck(processes, faults, wanted, lambda: _told(follower, say), say)
        await steady.stop()
        # The load waited for all replies, and behind the last one there is a snapshot.
        await follower.come_to(max(reply.epoch for reply in steady.replies))
        return Ran(findings(follower.verdicts()), len(steady.replies), struck)


async def _struck(
    processes: OnServers, faults: Iterator[str], wanted: Wanted, tell: Callable[[], None], say: Say
) -> list[str]:
    """A fault in the middle of each period, healed before the next one. Returns their names."""
    loop, cluster = asyncio.get_running_loop(), processes.cluster
    began_s, struck = loop.time(), list[str]()
    while (left_s := began_s + wanted.seconds - loop.time()) > 0:
        period_ends_s = loop.time() + min(wanted.every_s, left_s)
        await asyncio.sleep(min(wanted.every_s, left_s) / 2)
        struck.append(next(faults))
        at_s = loop.time()
        await FAULTS[struck[-1]](processes)
        await cluster.settled()
        await cluster.ready()
        cluster.check()
        say(f"{struck[-1]:<24} healed after {loop.time() - at_s:.1f} s")
        await asyncio.sleep(max(period_ends_s - loop.time(), 0))
        tell()
    return struck


def _told(follower: Follower, say: Say) -> None:
    verdicts = follower.verdicts()
    say(told(findings(verdicts)) if verdicts else "no interval has been judged yet")


def told(found: Findings) -> str:
    """A line for people."""
    return (
        f"intervals {found.intervals} agreed, with {found.epochs} epochs and {found.replies} replies; "
        f"{found.left_out} epochs left out; {len(found.wrong)} wrong"
    )

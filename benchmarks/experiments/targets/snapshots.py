"""The group `snapshots`: the throughput with a snapshot each second, by that without snapshots, with many accounts.

Both are measured in turns on one worker process, because processes of the same code differ by more than the cost of
snapshots. The worker is saturated, always with the same number of requests under way, because the rate depends on that
number. Between two pieces no request is under way and all changes are stored. Then a signal tells the running
coordinator whether to take snapshots. The first seconds of a piece do not count. The state is not audited, because
reading a million accounts would take longer than the rest.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import Final

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.own_cluster import BenchmarkCluster, deployment_of
from benchmarks.experiments import switched_coordinator
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.place import NEVER_SECONDS, place
from benchmarks.experiments.subject import Load, Subject, subjects
from benchmarks.experiments.targets.compare import compare
from benchmarks.experiments.targets.verdict import Verdict
from benchmarks.ycsbt.settings import Settings

INTERVAL_SECONDS: Final = 1.0
PAIRS_MIN: Final = 4
TIMES: Final = 2
"""Twice as many runs as elsewhere: a difference of a twentieth has to show."""
LONGER: Final = 2.0
"""Times the options' window and warm-up: several snapshots are to fall into a piece."""
SETTLE_SECONDS: Final = 2.5
"""Before each piece: until a snapshot of all that the one before it has changed is complete."""
TAKEN_SHARE_MIN: Final = 0.75
"""Of as many snapshots as there are intervals in a window: the next one begins when an epoch ends, and the last one may
end behind the window.
"""


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], many_keys: int) -> None:
    """The only row."""
    settings = Settings(keys=many_keys, n_slots=bench.common.slots)
    async with place(bench) as here:
        cluster = await here.cluster(
            "snapshots", 1, snapshot_interval_s=INTERVAL_SECONDS, coordinator_module=switched_coordinator.MODULE
        )
        deployment = deployment_of(cluster)
        loads = [Load("with snapshots", settings)]
        async with subjects(bench, deployment, loads, audited=False, check=cluster.check) as (subject,):
            await subject.warmed()

            async def rate_with() -> float:
                return await _rate(bench, cluster, deployment, subject, INTERVAL_SECONDS)

            async def rate_without() -> float:
                return await _rate(bench, cluster, deployment, subject, NEVER_SECONDS)

            pairs = max(PAIRS_MIN, TIMES * bench.common.runs)
            await compare(bench, verdicts["snapshots"], rate_with, rate_without, "/s", pairs)


async def _rate(
    bench: Bench, cluster: BenchmarkCluster, deployment: Deployment, subject: Subject, interval_s: float
) -> float:
    """Transactions a second in one piece. Raises `StepFailed` if it had not the snapshots it was to have."""
    with_them = interval_s == INTERVAL_SECONDS
    _tell(cluster, switched_coordinator.AGAIN)
    await asyncio.sleep(SETTLE_SECONDS)
    if not with_them:
        _tell(cluster, switched_coordinator.NONE)
    deployment.facts["snapshot interval s"] = interval_s
    subject.name = "with snapshots" if with_them else "without snapshots"
    result = await subject.saturated(LONGER)
    taken = round(result.counters["coordinator"].get("styx_snapshots_total", 0.0))
    bench.say(f"{subject.name}: {taken} were completed")
    if not as_many_as_meant(taken, result.plan.duration_s, interval_s):
        raise StepFailed(f"{subject.name}: {taken} were completed in {result.plan.duration_s:g} s")
    return result.throughput


def _tell(cluster: BenchmarkCluster, what: signal.Signals) -> None:
    for pid in cluster.pids()["coordinator"]:
        os.kill(pid, what)


def as_many_as_meant(taken: int, seconds: float, interval_s: float) -> bool:
    """Whether so many snapshots in so many seconds are about one for each interval; none where it never ends."""
    intervals = seconds / interval_s
    if intervals < 1:
        return taken == 0
    return max(1, int(TAKEN_SHARE_MIN * intervals)) <= taken <= intervals + 1

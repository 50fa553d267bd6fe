"""The group `memory`: the memory of an account in a worker's process, beyond its key and value.

Resident memory of one worker that holds many accounts, less that of the same process before they were loaded, each
when it has come to rest. Each run has a new worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from benchmarks.driver.deployment.own_cluster import BenchmarkCluster, deployment_of
from benchmarks.driver.processes import sample
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.place import place
from benchmarks.experiments.subject import Load, subjects
from benchmarks.experiments.targets.compare import note
from benchmarks.experiments.targets.pipeline import WORKER
from benchmarks.experiments.targets.verdict import Run, Verdict
from benchmarks.ycsbt.settings import Settings
from benchmarks.ycsbt.workload import YcsbT
from styx.values.codec import encode_strict

LOOK_SECONDS: Final = 0.5
REST_LOOKS: Final = 10
"""Looks in a row that must see the same memory."""
REST_SHARE: Final = 0.005
"""How much it may change meanwhile."""
REST_SECONDS_MAX: Final = 60.0
SNAPSHOT_SECONDS: Final = 2.0
"""The accounts are stored before memory comes to rest: what that took for a while is part of a worker's life."""


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], many_keys: int) -> None:
    """The only row."""
    settings = Settings(keys=many_keys, n_slots=bench.common.slots)
    net = stored_bytes(settings)
    bench.say(f"an account's key and value take {net:.1f} bytes")
    async with place(bench) as here:
        for number in range(1, bench.common.runs + 1):
            cluster = await here.cluster(f"memory-{number}", 1, snapshot_interval_s=SNAPSHOT_SECONDS)
            empty = await _at_rest(cluster)
            async with subjects(bench, deployment_of(cluster), [Load("memory", settings)], audited=False):
                full = await _at_rest(cluster)
            cluster.check()
            await cluster.end()
            bench.say(f"{empty / 2**20:.1f} MiB without accounts, {full / 2**20:.1f} MiB with them")
            note(bench, verdicts["memory"], number, Run(over=(full - empty) / many_keys - net))


def stored_bytes(settings: Settings) -> float:
    """Of an account's encoded key and value, on average."""
    (loading,) = YcsbT(settings).initial()
    encode = loading.operator.encode_state
    return sum(len(encode_strict(key)) + len(encode(state)) for key, state in loading.pairs) / loading.size


async def _at_rest(cluster: BenchmarkCluster) -> int:
    """The worker's resident bytes, once they stay the same. Raises `StepFailed`."""
    seen: list[int] = []
    for _ in range(int(REST_SECONDS_MAX / LOOK_SECONDS)):
        await asyncio.sleep(LOOK_SECONDS)
        usage = sample({WORKER: cluster.pids()[WORKER]}).roles[WORKER]
        seen.append(sum(each.rss_bytes for each in usage.values()))
        last = seen[-REST_LOOKS:]
        if len(last) == REST_LOOKS and max(last) - min(last) <= REST_SHARE * last[-1]:
            return last[-1]
    raise StepFailed(f"a worker's memory did not come to rest within {REST_SECONDS_MAX:g} s")

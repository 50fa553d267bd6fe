"""The group `snapshots`: what is left of the throughput if a snapshot is taken each second, with many accounts.

Two clusters stand side by side, one of which never takes a snapshot; each is given as many requests as it takes, and
both have the same number under way, on which the rate depends by more than on snapshots. Their state is not audited:
reading a million accounts takes longer than everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.experiments.bench import Bench, StepFailed
from benchmarks.experiments.place import NEVER_SECONDS, place
from benchmarks.experiments.subject import Load, Subject, subjects
from benchmarks.experiments.targets.compare import compare
from benchmarks.experiments.targets.verdict import Verdict
from benchmarks.ycsbt.settings import Settings

INTERVAL_SECONDS: Final = 1.0
TIMES: Final = 2
"""Twice as many runs as elsewhere: a difference of a twentieth has to show."""


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], many_keys: int) -> None:
    """The only row."""
    settings = Settings(keys=many_keys, n_slots=bench.common.slots)
    async with place(bench) as here:
        snapshots = await here.cluster("with-snapshots", 1, snapshot_interval_s=INTERVAL_SECONDS)
        plain = await here.cluster("without-snapshots", 1, snapshot_interval_s=NEVER_SECONDS)
        loads = [Load("with snapshots", settings)], [Load("without snapshots", settings)]
        async with (
            subjects(bench, deployment_of(snapshots), loads[0], audited=False, check=snapshots.check) as (with_them,),
            subjects(bench, deployment_of(plain), loads[1], audited=False, check=plain.check) as (without,),
        ):
            tops = [await subject.warmed() for subject in (with_them, without)]
            for subject in (with_them, without):
                subject.expect(min(tops))

            async def rate_with() -> float:
                return await _rate(bench, with_them, True)

            async def rate_without() -> float:
                return await _rate(bench, without, False)

            await compare(bench, verdicts["snapshots"], rate_with, rate_without, "/s", TIMES)


async def _rate(bench: Bench, subject: Subject, snapshots: bool) -> float:
    result = await subject.saturated()
    taken = result.counters["coordinator"].get("styx_snapshots_total", 0.0)
    if bool(taken) is not snapshots:
        raise StepFailed(f"{subject.name}: {taken:.0f} snapshots were completed in {bench.common.window_s:g} s")
    return result.throughput

"""The group `skew`: the highest rate with transfers to few accounts against that with uniform ones, on one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.place import place
from benchmarks.experiments.subject import Load, subjects
from benchmarks.experiments.targets.compare import compare
from benchmarks.experiments.targets.verdict import Verdict
from benchmarks.ycsbt.settings import Settings

WORKERS: Final = {"skew-1": 1, "skew-2": 2}
EXPONENTS: Final = (0.999, 0.0)


async def measure(bench: Bench, verdicts: Mapping[str, Verdict], _many_keys: int) -> None:
    """Each row on a cluster of its own, both distributions on the same one."""
    async with place(bench) as here:
        for name, verdict in verdicts.items():
            cluster = await here.cluster(name, WORKERS[name])
            loads = [
                Load(
                    f"{name} Zipf {exponent:g}",
                    Settings(keys=bench.common.keys, n_slots=bench.common.slots, zipf=exponent),
                )
                for exponent in EXPONENTS
            ]
            async with subjects(bench, deployment_of(cluster), loads, check=cluster.check) as (skewed, uniform):
                await compare(bench, verdict, skewed.highest_rate, uniform.highest_rate, "/s")
            await cluster.end()

"""Clusters on which every transaction crosses workers: with one slot for each worker, and transfers between slots."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final

from benchmarks.driver.deployment.own_cluster import deployment_of
from benchmarks.experiments.bench import Bench
from benchmarks.experiments.place import Place
from benchmarks.experiments.subject import Load, Subject, subjects
from benchmarks.ycsbt.settings import Settings

TWO: Final = 2


async def crossing(bench: Bench, here: Place, stack: AsyncExitStack, workers: int, slots: int) -> Subject:
    """One such cluster, ready for load until `stack` ends; with fewer `workers` than slots some transactions stay."""
    name = f"{workers}-of-{slots}" if workers < slots else f"{workers}-workers"
    cluster = await here.cluster(name, workers, slots=slots)
    load = Load(name, settings_of(bench, slots))
    (subject,) = await stack.enter_async_context(subjects(bench, deployment_of(cluster), [load], check=cluster.check))
    return subject


def settings_of(bench: Bench, slots: int) -> Settings:
    """Of such a cluster's load."""
    return Settings(keys=bench.common.keys, n_slots=slots, multi_partition=1.0)

"""The running deployment that the options ask for."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.embedded import embedded
from benchmarks.driver.deployment.existing import existing
from benchmarks.driver.deployment.own_cluster import ClusterShape, own_cluster
from benchmarks.driver.lossy import LossyApp
from benchmarks.driver.options import OWN, pairs, pids_of
from benchmarks.driver.workload import Workload


@asynccontextmanager
async def deployed(
    options: argparse.Namespace, workload: Workload, lossy: LossyApp | None = None
) -> AsyncIterator[Deployment]:
    """The deployment of `--on` and `--replica`; it ends with the context. An embedded engine runs the `lossy` app if
    there is one. Raises `ConfigurationError`.
    """
    async with _alone(options, workload, lossy) as deployment:
        named = options.replica not in (None, OWN)
        yield replace(deployment, replica=options.replica.rstrip("/")) if named else deployment


def _alone(
    options: argparse.Namespace, workload: Workload, lossy: LossyApp | None = None
) -> AbstractAsyncContextManager[Deployment]:
    on = options.on
    if on == "embedded":
        app = workload.app if lossy is None else lossy.app
        return embedded(
            app,
            options.data_dir,
            options.slots,
            options.snapshot_interval,
            options.in_flight,
            in_memory=options.in_memory,
            epoch_transactions=options.epoch_transactions,
            own_replica=options.replica == OWN,
        )
    if on == "cluster":
        shape = ClusterShape(
            options.workers, options.slots, options.snapshot_interval, options.gateway, options.replica == OWN
        )
        return own_cluster(workload.app_target, workload.app.name, shape)
    urls = pairs("--metrics", options.metrics)
    return nullcontext(existing(on, workload.app, options.app_name or workload.app.name, pids_of(options), urls))

"""The running deployment that the options ask for."""

from __future__ import annotations

import argparse
from contextlib import AbstractAsyncContextManager, nullcontext

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.embedded import embedded
from benchmarks.driver.deployment.existing import existing
from benchmarks.driver.deployment.own_cluster import ClusterShape, own_cluster
from benchmarks.driver.lossy import LossyApp
from benchmarks.driver.options import pairs, pids_of
from benchmarks.driver.workload import Workload


def deployed(
    options: argparse.Namespace, workload: Workload, lossy: LossyApp | None = None
) -> AbstractAsyncContextManager[Deployment]:
    """The deployment of `--on`; it ends with the context. An embedded engine runs the `lossy` app if there is one.
    Raises `ConfigurationError`.
    """
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
        )
    if on == "cluster":
        shape = ClusterShape(options.workers, options.slots, options.snapshot_interval, options.gateway)
        return own_cluster(workload.app_target, workload.app.name, shape)
    urls = pairs("--metrics", options.metrics)
    return nullcontext(existing(on, workload.app, options.app_name or workload.app.name, pids_of(options), urls))

"""A cluster of real processes on a broker that runs already, with its store in a temporary directory.

All processes have ended afterwards. The app's topics stay in the broker, under a name of their own for each run.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.styx_target import KafkaTargets
from proof.cluster.cluster import ClusterOptions, ClusterUnderTest

SNAPSHOT_SECONDS = 2.0


@asynccontextmanager
async def cluster_on_broker(
    app_target: str, name: str, kafka: str, workers: int, slots: int
) -> AsyncIterator[ClusterUnderTest]:
    """A cluster of the app MODULE:APP. `kafka` is HOST:PORT. Raises `ChildFailed` if it does not start."""
    with tempfile.TemporaryDirectory(prefix="styx-benchmark-") as directory:
        options = ClusterOptions(
            app=app_target,
            name=f"{name}-{secrets.token_hex(4)}",
            kafka=kafka,
            store=f"file://{directory}/store",
            directory=Path(directory),
            workers=workers,
            slots=slots,
            snapshot_interval_s=SNAPSHOT_SECONDS,
        )
        async with ClusterUnderTest(options) as cluster:
            await cluster.start()
            yield cluster


def deployment_of(cluster: ClusterUnderTest) -> Deployment:
    """A cluster that runs, as the driver sees it."""
    options = cluster.options

    def pids() -> dict[str, list[int]]:
        coordinator = [] if cluster.coordinator is None else [cluster.coordinator.pid]
        return {"worker": [each.pid for each in cluster.workers if each is not None], "coordinator": coordinator}

    return Deployment(
        facts={"kind": "cluster", "workers": options.workers, "slots": options.slots, "through": "kafka"},
        open_client=cluster.client,
        make_target=KafkaTargets(cluster.url, options.name),
        pids=pids,
    )

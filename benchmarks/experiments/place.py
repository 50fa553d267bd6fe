"""A place for measuring: a new broker and a new store, with the deployments to compare side by side on them.

All deployments of an experiment run together, so that steps can take turns. They share one broker, so that none has a
warmer broker. A deployment without load costs almost nothing. Afterwards everything is removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.own_cluster import BenchmarkCluster
from benchmarks.experiments.bench import Bench
from benchmarks.reference.echo_deployment import echo_on
from benchmarks.ycsbt import bank
from proof.cluster.cluster import ClusterOptions
from proof.cluster.services import LocalServices, local_services
from styx.kafka.topics import REPLY_PARTITIONS_DEFAULT
from styx.model.app import App

SNAPSHOT_SECONDS: Final = 10.0
"""Between snapshots where nothing else is asked for: the coordinator's own default."""
NEVER_SECONDS: Final = 100_000.0
APP: Final = f"{bank.__name__}:app"


class Place:
    """Made by `place`; deployments live as long as it does, or shorter if they are ended."""

    def __init__(self, bench: Bench, services: LocalServices, directory: Path, stack: AsyncExitStack) -> None:
        self._bench = bench
        self._services = services
        self._directory = directory
        self._stack = stack

    async def cluster(
        self,
        name: str,
        workers: int,
        *,
        slots: int | None = None,
        snapshot_interval_s: float = SNAPSHOT_SECONDS,
        app: str = APP,
        coordinator_module: str = "styx",
        worker_module: str = "styx",
    ) -> BenchmarkCluster:
        """One that serves `app`, MODULE:APP, under a name of its own; `slots`: None for those of the options.

        `coordinator_module` is run as its coordinator, and `worker_module` as its workers, instead of the command
        line's. Raises `ChildFailed`.
        """
        services = self._services
        options = ClusterOptions(
            app=app,
            name=name,
            kafka=services.kafka_address,
            store=name,
            s3_endpoint=services.s3_endpoint,
            directory=self._directory / name,
            workers=workers,
            slots=self._bench.common.slots if slots is None else slots,
            reply_partitions=REPLY_PARTITIONS_DEFAULT,
            snapshot_interval_s=snapshot_interval_s,
            coordinator_module=coordinator_module,
            worker_module=worker_module,
        )
        cluster = await self._stack.enter_async_context(BenchmarkCluster(options, services, through_gateway=False))
        await cluster.start()
        self._bench.say(f"{name}: {workers} worker{'s' * (workers > 1)} on {options.slots} slots")
        return cluster

    async def echo(self) -> Deployment:
        """The echo process, under the same name as its app has. Raises `ChildFailed`."""
        directory = self._directory / "echo"
        directory.mkdir()
        app = App("echo", bank.app.operators.values())
        echo = await self._stack.enter_async_context(
            echo_on(self._services.kafka_address, app, self._bench.common.slots, directory)
        )
        self._bench.say(f"echo: one process on {self._bench.common.slots} partitions")
        return echo


@asynccontextmanager
async def place(bench: Bench) -> AsyncIterator[Place]:
    """Raises `OSError` if the services cannot run."""
    bench.say("starting Kafka and MinIO")
    with ExitStack() as outer:
        directory = Path(outer.enter_context(tempfile.TemporaryDirectory(prefix="styx-experiment-")))
        services = outer.enter_context(local_services())
        async with AsyncExitStack() as stack:
            yield Place(bench, services, directory, stack)

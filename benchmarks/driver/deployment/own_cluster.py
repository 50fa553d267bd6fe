"""A new cluster for one run: Kafka, MinIO, a coordinator, workers and optionally a gateway, as processes of this
machine in a temporary directory. Afterwards all of it is removed.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.deployment.replies import RepliesTopic
from benchmarks.driver.processes import Listener
from benchmarks.driver.styx_target import HttpTargets, KafkaTargets
from proof.cluster.child import ChildFailed
from proof.cluster.cluster import POLL_SECONDS, READY_SECONDS_MAX, ClusterOptions, ClusterUnderTest
from proof.cluster.services import LocalServices, local_services
from styx.cli.facts_client import fetch_status


class ClusterShape(NamedTuple):
    """The parts of a cluster. With `through_gateway` clients use HTTP; otherwise they use Kafka, and there is no
    gateway. `replica`: there is one.
    """

    workers: int
    slots: int
    snapshot_interval_s: float
    through_gateway: bool
    replica: bool = False


class BenchmarkCluster(ClusterUnderTest):
    """It has a gateway only if one is used."""

    def __init__(self, options: ClusterOptions, services: LocalServices, through_gateway: bool) -> None:
        super().__init__(options)
        self.services = services
        self.through_gateway = through_gateway
        self._broker = Listener(_port(services.kafka_address))
        self._store = Listener(_port(services.s3_endpoint))

    async def start(self) -> None:
        """Returns when it serves; raises `ChildFailed`."""
        await self.start_coordinator()
        for place in range(self.options.workers):
            await self.start_worker(place)
        await self._until_running()
        if self.through_gateway:
            await self.start_gateway()
            await self.ready()

    async def kill_worker(self, place: int) -> None:
        """See `Workers.kill_worker`."""
        victim, self.workers[place] = self.workers[place], None
        assert victim is not None
        await victim.kill()

    def pids(self) -> Mapping[str, Sequence[int]]:
        """Of the processes that run now, by role."""
        roles = {
            "worker": [child.pid for child in self.workers if child is not None],
            "coordinator": [child.pid for child in (self.coordinator,) if child is not None],
            "gateway": [child.pid for child in (self.gateway,) if child is not None],
            "broker": self._broker.pids(),
            "store": self._store.pids(),
            "replica": [child.pid for child in (self.replica,) if child is not None],
        }
        return {role: pids for role, pids in roles.items() if pids}

    def urls(self) -> Mapping[str, Sequence[str]]:
        """The addresses of their metrics."""
        workers = [port for port, child in zip(self.worker_http_ports, self.workers, strict=True) if child is not None]
        roles = {
            "coordinator": [f"http://127.0.0.1:{self.facts_port}"],
            "worker": [f"http://127.0.0.1:{port}" for port in workers],
        }
        return roles | ({"gateway": [self.http_url]} if self.gateway is not None else {})

    async def _until_running(self) -> None:
        url = f"http://127.0.0.1:{self.facts_port}"
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                while not await asyncio.to_thread(_is_running, url, self.options.workers):
                    self.check()
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            tails = "".join(child.tail() for child in self.children)
            raise ChildFailed(f"the cluster did not run within {READY_SECONDS_MAX:g} s.{tails}") from None


@asynccontextmanager
async def own_cluster(app_target: str, name: str, shape: ClusterShape) -> AsyncIterator[Deployment]:
    """A cluster of the app MODULE:APP, under `name`. Raises `OSError` if the services cannot run, and `ChildFailed`."""
    async with benchmark_cluster(app_target, name, shape) as cluster:
        yield deployment_of(cluster)


@asynccontextmanager
async def benchmark_cluster(
    app_target: str, name: str, shape: ClusterShape, logs: Path | None = None
) -> AsyncIterator[BenchmarkCluster]:
    """The same as something that can also be killed and restarted in parts. What its processes print stays in the
    folder `logs`, if one is given.
    """
    with ExitStack() as stack:
        directory = logs or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="styx-benchmark-")))
        services = stack.enter_context(local_services())
        options = ClusterOptions(
            app=app_target,
            name=name,
            kafka=services.kafka_address,
            store=name,
            s3_endpoint=services.s3_endpoint,
            directory=directory,
            workers=shape.workers,
            slots=shape.slots,
            reply_partitions=16,
            snapshot_interval_s=shape.snapshot_interval_s,
        )
        async with BenchmarkCluster(options, services, shape.through_gateway) as cluster:
            await cluster.start()
            if shape.replica:
                await cluster.start_replica()
            yield cluster


def deployment_of(cluster: BenchmarkCluster) -> Deployment:
    """A cluster that runs, as the driver sees it."""
    options = cluster.options
    return Deployment(
        facts={
            "kind": "cluster",
            "workers": options.workers,
            "slots": options.slots,
            "through": "gateway" if cluster.through_gateway else "kafka",
            "snapshot interval s": options.snapshot_interval_s,
        },
        open_client=cluster.client,
        make_target=HttpTargets(cluster.http_url)
        if cluster.through_gateway
        else KafkaTargets(cluster.url, options.name),
        pids=cluster.pids,
        urls=cluster.urls,
        replies=RepliesTopic(cluster.url, options.name),
        workers=cluster,
        replica=cluster.replica_url if cluster.replica is not None else "",
    )


def _is_running(url: str, workers: int) -> bool:
    try:
        status = fetch_status(url)
    except OSError:
        return False
    return status.phase == "running" and len(status.workers) >= workers


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])

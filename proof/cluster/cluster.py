"""A cluster of real processes: a coordinator, workers and a gateway as children of a test, on Kafka and a store.

Each cluster has its own name, so that several clusters can share one broker and one bucket. `proof.cluster.audit`
checks the outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import secrets
import sys
import urllib.request
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from proof.cluster.child import ChildFailed, ChildProcess
from styx.cli.facts_client import fetch, fetch_status
from styx.client.base import Client
from styx.client.connect import connect
from styx.cluster.reaching import ask
from styx.cluster.wire import Scale
from styx.kafka.reader import KafkaReader
from styx.kafka.topics import topics_of
from styx.model.app import App
from styx.process.ports import free_port
from styx.store.base import Store
from styx.store.stores import open_store
from styx.testing.patience import PATIENCE_SECONDS
from styx.transport import Security

READY_SECONDS_MAX: Final = PATIENCE_SECONDS
"""How long a cluster may take until it can be connected to."""
POLL_SECONDS: Final = 0.1

_APP_MODULE: Final = """\
from {module} import {variable} as original
from styx.model.app import App

app = App({name!r}, original.operators.values(), events=original.events.values())
"""


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """`app` is MODULE:APP, `name` the name in its topics, and `kafka` HOST:PORT.

    `store` is a prefix in the bucket `styx` at `s3_endpoint`, or a file:// URL if there is none. Logs of the processes
    go into `directory`. `worker_module`, `coordinator_module` and `gateway_module` run instead of the command line's
    processes. `auto`: the coordinator gets no number of workers. `keep_log`: nothing of the log is released. Times are
    in seconds.
    """

    app: str
    name: str
    kafka: str
    store: str
    directory: Path
    s3_endpoint: str | None = None
    s3_access_key: str = "minioadmin"
    s3_secret_key: str = "minioadmin"
    workers: int = 2
    slots: int = 8
    reply_partitions: int = 4
    snapshot_interval_s: float = 2.0
    silence_s: float = 1.0
    grace_s: float = 10.0
    auto: bool = False
    function_seconds_max: float = 10.0
    keep_log: bool = True
    worker_module: str = "styx"
    coordinator_module: str = "styx"
    gateway_module: str = "styx"
    secret: str = field(default_factory=lambda: secrets.token_hex(32))


class ClusterUnderTest:
    """Use it as `async with`: all processes that it has started have ended after the block."""

    def __init__(self, options: ClusterOptions) -> None:
        self.options = options
        self.coordinator: ChildProcess | None = None
        self.gateway: ChildProcess | None = None
        self.ingest: ChildProcess | None = None
        self.replica: ChildProcess | None = None
        self.workers: list[ChildProcess | None] = [None] * options.workers
        self.coordinator_port = free_port(following=1)
        self.facts_port = self.coordinator_port + 1
        self.gateway_port = free_port()
        self.replica_port = free_port()
        self.worker_ports = [free_port() for _ in range(options.workers)]
        self.worker_http_ports = [free_port() for _ in range(options.workers)]
        self.workers_wanted = options.workers
        self.topics = topics_of(options.name)
        self._started = 0
        self._module = f"styx_app_{options.name.replace('-', '_')}"
        options.directory.mkdir(parents=True, exist_ok=True)
        module, _, variable = options.app.partition(":")
        source = _APP_MODULE.format(module=module, variable=variable, name=options.name)
        (options.directory / f"{self._module}.py").write_text(source)
        original: App = getattr(importlib.import_module(module), variable)
        self.app = App(options.name, original.operators.values(), events=original.events.values())

    # Processes ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Starts a coordinator, all workers and a gateway, and waits until a client can connect."""
        await self.start_coordinator()
        for place in range(self.options.workers):
            await self.start_worker(place)
        await self.start_gateway()
        await self.ready()

    async def start_coordinator(self, snapshot_interval_s: float | None = None) -> None:
        """Starts the coordinator, always at the same address. `snapshot_interval_s` replaces the options' interval
        until the next start.
        """
        options = self.options
        interval_s = options.snapshot_interval_s if snapshot_interval_s is None else snapshot_interval_s
        self.coordinator = await self._child(
            "coordinator",
            *("--app", f"{self._module}:app", "--port", str(self.coordinator_port)),
            *("--workers", "auto" if options.auto else str(self.workers_wanted), "--slots", str(options.slots)),
            *("--reply-partitions", str(options.reply_partitions), "--grace", str(options.grace_s)),
            *("--snapshot-interval", str(interval_s), "--silence", str(options.silence_s)),
            *("--http-port", str(self.facts_port), *(["--keep-log"] if options.keep_log else [])),
            *("--function-seconds-max", str(options.function_seconds_max)),
            *self._data(),
        )

    async def start_worker(self, place: int, same_port: bool = False) -> None:
        """Starts a worker. `same_port`: at the address of this place's first worker, otherwise at an unused one."""
        port = self.worker_ports[place] if same_port else free_port()
        self.workers[place] = await self._child(
            "worker",
            *("--coordinator", f"127.0.0.1:{self.coordinator_port}", "--port", str(port)),
            *("--name", f"w{place}", "--http-port", str(self.worker_http_ports[place])),
            *self._data(),
        )
        self.worker_ports[place] = port

    async def replace_worker(self, place: int) -> None:
        """Kills (SIGKILL) the worker there, and starts another one in its place at once."""
        worker = self.workers[place]
        assert worker is not None, f"no worker runs in place {place}"
        await worker.kill()
        await self.start_worker(place)

    async def replace_coordinator(self) -> None:
        """Kills (SIGKILL) the coordinator, and starts another one at once."""
        assert self.coordinator is not None, "no coordinator runs"
        await self.coordinator.kill()
        await self.start_coordinator()

    async def add_worker(self) -> None:
        """Starts a worker in a place that has none, or in a new one."""
        if None not in self.workers:
            self.workers.append(None)
            self.worker_ports.append(0)
            self.worker_http_ports.append(free_port())
        await self.start_worker(self.workers.index(None))

    async def scale(self, workers: int) -> None:
        """Asks the coordinator for `workers` workers. A coordinator that starts later wants as many.

        Raises `OSError` if the coordinator cannot be reached, `ChildFailed` if it refuses.
        """
        self.workers_wanted = workers
        answer = await ask(f"127.0.0.1:{self.coordinator_port}", self.security, Scale(workers))
        if not answer.done:
            raise ChildFailed(f"the coordinator does not scale to {workers} workers: {answer.text}")

    async def start_gateway(self) -> None:
        """Starts the gateway, always at the same address."""
        self.gateway = await self._child(
            "gateway",
            *("--coordinator", f"127.0.0.1:{self.coordinator_port}", "--port", str(self.gateway_port)),
            *("--log", self.url),
        )

    async def start_ingest(self) -> None:
        """Starts the process that reads the topics of the app's ingests."""
        coordinator = f"127.0.0.1:{self.coordinator_port}"
        self.ingest = await self._child("ingest", "--coordinator", coordinator, "--log", self.url)

    async def start_audit(self, *words: str) -> ChildProcess:
        """Starts `styx audit` of this cluster, which writes its verdicts as JSON into its file. It is not one of the
        cluster's `children`.
        """
        return await self._child("audit", f"{self._module}:app", "--json", *words, *self._data())

    async def start_replica(self, *words: str) -> None:
        """Starts a replica that follows the closed epochs, always at the same address."""
        coordinator = f"127.0.0.1:{self.coordinator_port}"
        address = ("--coordinator", coordinator, "--port", str(self.replica_port), "--store", self._store_url)
        self.replica = await self._child("replica", *address, *words)

    @property
    def children(self) -> list[ChildProcess]:
        """The processes that were started and not killed since."""
        all_of_them = (self.coordinator, *self.workers, self.gateway, self.ingest, self.replica)
        return [child for child in all_of_them if child is not None]

    def check(self) -> None:
        """Raises `ChildFailed` if a process has ended by itself."""
        for child in self.children:
            child.check()

    async def ready(self) -> None:
        """Waits until the gateway reports that it can serve. Raises `ChildFailed`."""
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                while not await asyncio.to_thread(_is_ready, self.http_url):
                    self.check()
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            tails = "".join(child.tail() for child in self.children)
            raise ChildFailed(f"the cluster was not ready within {READY_SECONDS_MAX:g} s.{tails}") from None

    async def settled(self) -> None:
        """Waits until every worker that was started shares the slots, and epochs run; raises `ChildFailed`."""
        wanted = {f"w{place}" for place, worker in enumerate(self.workers) if worker is not None}
        said = "the coordinator does not answer"
        try:
            async with asyncio.timeout(READY_SECONDS_MAX):
                while True:
                    self.check()
                    with contextlib.suppress(OSError):
                        status = await asyncio.to_thread(fetch_status, self.facts_url)
                        members = {worker.name for worker in status.workers if worker.member and not worker.leaving}
                        if status.phase == "running" and members == wanted:
                            return
                        said = f"{status.phase}, {sorted(members)} share the slots"
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            tails = "".join(child.tail() for child in self.children)
            raise ChildFailed(f"not all of {sorted(wanted)} share the slots: {said}.{tails}") from None

    async def replayed(self) -> int:
        """The number of recorded epochs that were replayed under this coordinator."""
        _, page = await asyncio.to_thread(fetch, f"{self.facts_url}/metrics")
        lines = page.decode().splitlines()
        return sum(int(float(line.split()[-1])) for line in lines if line.startswith("styx_replayed_epochs_total"))

    async def end(self) -> None:
        """Kills all processes that are left."""
        for child in self.children:
            await child.kill()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.end()

    # Ways in -----------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The broker's URL."""
        return f"kafka://{self.options.kafka}"

    @property
    def http_url(self) -> str:
        """The gateway's URL."""
        return f"http://127.0.0.1:{self.gateway_port}"

    @property
    def replica_url(self) -> str:
        """The URL of the replica."""
        return f"http://127.0.0.1:{self.replica_port}"

    @property
    def facts_url(self) -> str:
        """The URL of the coordinator's facts."""
        return f"http://127.0.0.1:{self.facts_port}"

    @property
    def security(self) -> Security:
        """The secret and name with which the processes identify themselves."""
        return Security(self.options.secret.encode(), "styx")

    def client(self) -> Client:
        """A client through Kafka, not yet open."""
        return connect(self.url, self.app)

    def reader(self) -> KafkaReader:
        """A reader of the cluster's log, for a thread that may block. The caller closes it."""
        return KafkaReader(self.options.kafka, self.topics)

    def open_store(self) -> Store:
        """Opens the cluster's store. Blocks. Raises `OSError` if the store cannot be reached."""
        options = self.options
        if options.s3_endpoint is None:
            return open_store(self._store_url)
        return open_store(
            self._store_url,
            endpoint=options.s3_endpoint,
            access_key=options.s3_access_key,
            secret_key=options.s3_secret_key,
        )

    @property
    def _store_url(self) -> str:
        return self.options.store if self.options.s3_endpoint is None else f"s3://styx/{self.options.store}"

    def _data(self) -> list[str]:
        return ["--log", self.url, "--store", self._store_url]

    async def _child(self, role: str, *arguments: str) -> ChildProcess:
        options = self.options
        self._started += 1
        name = f"{self._started:03d}-{role}"
        modules_of = {
            "worker": options.worker_module,
            "coordinator": options.coordinator_module,
            "gateway": options.gateway_module,
        }
        module = modules_of.get(role, "styx")
        return await ChildProcess.start(name, ["-m", module, role, *arguments], self._environment(), options.directory)

    def _environment(self) -> dict[str, str]:
        options = self.options
        modules = os.pathsep.join([str(options.directory), *filter(None, sys.path)])
        environment = {"STYX_SECRET": options.secret, "PYTHONPATH": modules}
        if options.s3_endpoint is not None:
            environment |= {
                "STYX_S3_ENDPOINT": options.s3_endpoint,
                "STYX_S3_ACCESS_KEY": options.s3_access_key,
                "STYX_S3_SECRET_KEY": options.s3_secret_key,
            }
        return environment


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=READY_SECONDS_MAX) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False

"""Runs a cluster's processes as children: brings them up, deploys the app, keeps their number, stops them in order.

The coordinator decides how many workers there should be.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from typing import Final

from styx.cli.exit_codes import CommandFailed
from styx.cli.facts_client import fetch, fetch_status
from styx.cli.run_directory import RunFacts, secret_file, write_facts
from styx.cli.up.child import Child
from styx.cli.up.plan import UpPlan
from styx.cluster.coordinator.status import Status
from styx.cluster.facts_access import token_of
from styx.cluster.options import cluster_limits
from styx.cluster.reaching import ask
from styx.cluster.wire import Deploy
from styx.model.limits import stop_seconds_max
from styx.process.ports import free_port
from styx.transport import Security

POLL_SECONDS: Final = 0.2
"""The time between two checks of an awaited condition."""
SCALE_SECONDS: Final = 1.0
"""The time between two fetches of the wanted number of workers."""
PATIENCE_SECONDS: Final = 5.0
"""The time before the supervisor prints what it waits for."""

Say = Callable[[str], None]


class Supervisor:
    """`run` ends with the cluster: after a signal, or with a `CommandFailed` if it cannot go on."""

    def __init__(self, plan: UpPlan, security: Security, environment: Mapping[str, str], say: Say) -> None:
        self._plan = plan
        self._security = security
        self._token = token_of(security.secret)
        self._environment = environment
        self._say = say
        self._workers_wanted = plan.workers
        self._worker_number = 0
        self._workers: dict[str, Child] = {}
        self._facts_ports: dict[str, int] = {}
        self._coordinator = self._child("coordinator", lambda: plan.coordinator_words(self._workers_wanted))
        self._gateways = [self._gateway(number, port) for number, port in enumerate(plan.gateway_ports, 1)]
        self._ingests = [self._child("ingest", lambda: plan.ingest_words("ingest"))] if plan.ingests else []
        self._running: set[asyncio.Task[None]] = set()
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, package: bytes, on_ready: Callable[[str, dict[str, int]], None]) -> None:
        """Runs the cluster with the app in `package` until told to stop; calls `on_ready(version in words, pids)`."""
        told: asyncio.Queue[None] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, told.put_nowait, None)
        for child in (self._coordinator, *self._gateways, *self._ingests):
            self._start(child)
        self._set_workers(self._plan.workers, None)
        serving = asyncio.ensure_future(self._serve(package, on_ready))
        first = asyncio.ensure_future(told.get())
        try:
            await asyncio.wait([serving, first, self._failed], return_when=asyncio.FIRST_COMPLETED)
        finally:
            first.cancel()
            serving.cancel()
            await asyncio.wait([serving])
            await self._stop(told)
        if self._failed.done():
            self._failed.result()
        if not serving.cancelled():
            serving.result()

    def pids(self) -> dict[str, int]:
        """The ids of all running processes, by name."""
        return {child.name: child.pid for child in self._children() if child.pid is not None}

    # Bringing up -------------------------------------------------------------------------------------------

    async def _serve(self, package: bytes, on_ready: Callable[[str, dict[str, int]], None]) -> None:
        text = await self._deploy(package)
        await self._until("the gateway", self._gateways_ready)
        await self._until("the cluster", self._cluster_runs)
        on_ready(text, self.pids())
        while True:
            await asyncio.sleep(SCALE_SECONDS)
            status = await self._status()
            if status is not None and status.waiting is None and status.workers_wanted:
                self._set_workers(status.workers_wanted, status)

    async def _deploy(self, package: bytes) -> str:
        await self._until("the coordinator", self._coordinator_works)
        while True:
            try:
                answer = await ask(self._plan.coordinator, self._security, Deploy(package))
            except OSError:  # it begins anew; to deploy the same again changes nothing
                await asyncio.sleep(POLL_SECONDS)
                continue
            if not answer.done:
                raise CommandFailed(f"the app cannot be deployed: {answer.text}")
            return answer.text

    async def _until(self, what: str, ready: Callable[[], str | None]) -> None:
        """Waits until `ready` gives None; prints a reason that lasts."""
        loop, said = asyncio.get_running_loop(), None
        speaks_at_s = loop.time() + PATIENCE_SECONDS
        while (reason := await asyncio.to_thread(ready)) is not None:
            if loop.time() >= speaks_at_s and reason != said:
                self._say(f"waiting for {what}: {reason}")
                said = reason
            await asyncio.sleep(POLL_SECONDS)

    def _coordinator_works(self) -> str | None:
        try:
            return fetch_status(self._plan.facts_url, self._token).waiting
        except OSError as error:
            return f"it does not answer yet ({error.strerror or error})"

    def _cluster_runs(self) -> str | None:
        try:
            status = fetch_status(self._plan.facts_url, self._token)
        except OSError as error:
            return f"the coordinator does not answer ({error.strerror or error})"
        return None if status.phase == "running" else status.waiting or status.phase_text

    def _gateways_ready(self) -> str | None:
        for url in self._plan.gateway_urls:
            try:
                status, body = fetch(f"{url}/readyz", verified=False)
            except OSError as error:
                return f"{url} does not answer yet ({error.strerror or error})"
            if status != 200:
                return body.decode("utf-8", "replace")
        return None

    async def _status(self) -> Status | None:
        try:
            return await asyncio.to_thread(fetch_status, self._plan.facts_url, self._token)
        except OSError:
            return None

    # Children ----------------------------------------------------------------------------------------------

    def _child(self, name: str, words: Callable[[], list[str]], announced: bool = True) -> Child:
        stop_s = stop_seconds_max(cluster_limits(self._plan.numbers.function_seconds_max))
        return Child(name, words, self._environment, self._say, self._pids_changed, stop_s, announced)

    def _gateway(self, number: int, port: int) -> Child:
        name = "gateway" if len(self._plan.gateway_ports) == 1 else f"gateway-{number}"
        return self._child(name, lambda: self._plan.gateway_words(name, port))

    def _children(self) -> list[Child]:
        return [*self._gateways, *self._ingests, self._coordinator, *self._workers.values()]

    def _start(self, child: Child) -> None:
        task = asyncio.ensure_future(child.run())
        self._running.add(task)
        task.add_done_callback(self._child_ended)

    def _child_ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._failed.done():
            self._failed.set_exception(error)

    def _set_workers(self, wanted: int, status: Status | None) -> None:
        """Starts workers that are missing; of those that are too many, stops the ones that stand by."""
        if wanted != self._workers_wanted:
            self._say(f"workers wanted: {wanted} instead of {self._workers_wanted}")
            self._workers_wanted = wanted
        while len(self._workers) < wanted:
            self._worker_number += 1
            self._add_worker(f"worker-{self._worker_number}")
        members = set() if status is None else {worker.name for worker in status.workers if worker.member}
        if status is None or status.phase != "running" or len(members) < wanted:
            return  # who is to stay is not decided yet
        for name in [name for name in self._workers if name not in members][: len(self._workers) - wanted]:
            self._say(f"{name} stands by and is stopped")
            task = asyncio.ensure_future(self._workers.pop(name).stop())
            self._running.add(task)
            task.add_done_callback(self._child_ended)

    def _add_worker(self, name: str) -> None:
        announced = self._worker_number <= self._plan.workers
        port = self._facts_ports[name] = free_port()
        self._workers[name] = self._child(name, lambda: self._plan.worker_words(name, port), announced)
        self._start(self._workers[name])

    def _pids_changed(self) -> None:
        plan = self._plan
        facts = RunFacts(
            app=plan.app,
            cluster=plan.cluster,
            coordinator=plan.coordinator,
            facts_url=plan.facts_url,
            gateway_urls=plan.gateway_urls,
            secret_file=str(secret_file(plan.directory).resolve()),
            pids=self.pids(),
            worker_urls={name: plan.worker_url(self._facts_ports[name]) for name in self._workers},
        )
        write_facts(plan.directory, facts)

    # Stopping ----------------------------------------------------------------------------------------------

    async def _stop(self, told: asyncio.Queue[None]) -> None:
        """Stops all processes in order, so that nothing in flight is lost; another signal kills the rest."""
        stopping, again = asyncio.ensure_future(self._stop_in_order()), asyncio.ensure_future(told.get())
        await asyncio.wait([stopping, again], return_when=asyncio.FIRST_COMPLETED)
        if not stopping.done():
            self._say("Stopping at once: what is not stored will be replayed from the log.")
            for child in self._children():
                child.kill()
        again.cancel()
        await stopping
        if self._running:
            await asyncio.wait(self._running)

    async def _stop_in_order(self) -> None:
        self._say("Stopping: the gateway finishes what is in flight …")
        await asyncio.gather(*(child.stop() for child in (*self._gateways, *self._ingests)))
        self._say("Stopping: a last snapshot …")
        await self._coordinator.stop()
        self._say("Stopping: workers …")
        await asyncio.gather(*(child.stop() for child in self._workers.values()))

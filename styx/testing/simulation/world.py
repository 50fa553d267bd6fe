"""Everything that a simulation shares: time, network, log, store, and which processes live. Wiring only."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from styx.app import App
from styx.coordinator.events import Heard, WorkerJoined, WorkerLost, WorkerSaid
from styx.limits import Limits
from styx.protocol import ToCoordinator
from styx.testing.simulation.coordinator_host import CoordinatorHost
from styx.testing.simulation.faulty_store import FaultyStore
from styx.testing.simulation.network import Network
from styx.testing.simulation.plan import SimulationPlan
from styx.testing.simulation.shared_log import SharedLog
from styx.testing.simulation.virtual_time import VirtualTime
from styx.testing.simulation.worker_host import WorkerHost

NOTICE_S = 0.02
"""How long it takes at most to notice a broken connection."""

_decode: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(ToCoordinator)


class World:
    """`workers` are the living ones by id. `keep_log`: nothing is released, so that everything can be replayed.

    `outcomes` are the logged ones of outside calls, `outside_runs` how often each was run.
    """

    def __init__(self, plan: SimulationPlan, app: App, seed: str, keep_log: bool) -> None:
        self.plan = plan
        self.app = app
        self.rng = Random(seed)
        self.time = VirtualTime()
        self.network = Network(self.time, self.rng, plan.slow_messages)
        self.log = SharedLog(self.time, self.rng, plan.log_delay_s)
        self.store = FaultyStore(self.time, self.rng)
        self.limits = limits_of(plan)
        self.keep_log = keep_log
        self.duplicating = False
        self.idle = False
        self.snapshots = 0
        self.outcomes: dict[bytes, bytes] = {}
        self.outside_runs: dict[bytes, int] = {}
        self.workers: dict[int, WorkerHost] = {}
        self.coordinator: CoordinatorHost | None = None
        self._incarnations = 0

    # Processes ---------------------------------------------------------------------------------------------

    def start_coordinator(self) -> None:
        """A coordinator process starts; it reads its metadata first."""
        if self.coordinator is None or not self.coordinator.alive:
            self._incarnations += 1
            plan = self.plan
            self.coordinator = CoordinatorHost(
                self, self._incarnations, plan.slots, plan.workers, plan.snapshot_interval_s
            )

    def coordinator_started(self) -> None:
        """The living workers connect to it."""
        for worker in self.workers:
            self.join(worker)

    def start_worker(self, worker: int) -> None:
        """A worker process starts and connects."""
        if worker not in self.workers:
            self._incarnations += 1
            host = WorkerHost(self, worker, self._incarnations, self.app, self.plan.slots, self.limits)
            self.workers[worker] = host
            self.join(worker)

    def join(self, worker: int) -> None:
        """The worker's connection reaches the coordinator."""
        host = self.workers[worker]

        def joined(_: bytes) -> None:
            if host.alive and self.coordinator is not None:
                self.coordinator.give(WorkerJoined(worker))

        self.network.send(host.name, "coordinator", joined, b"")

    def crash_worker(self, worker: int) -> None:
        """A worker process is killed; the coordinator notices soon, unless its replacement connects first."""
        host = self.workers.pop(worker, None)
        if host is None:
            return
        host.crash()

        def noticed() -> None:
            if worker not in self.workers and self.coordinator is not None:
                self.coordinator.give(WorkerLost(worker))

        self.time.after(self.rng.random() * NOTICE_S, noticed)

    def crash_coordinator(self) -> None:
        """The coordinator process is killed."""
        if self.coordinator is not None:
            self.coordinator.crash()

    # Connections to the coordinator --------------------------------------------------------------------------

    def told_by(self, host: WorkerHost) -> Callable[[bytes], None]:
        """How a worker's message arrives."""

        def deliver(data: bytes) -> None:
            if self.workers.get(host.id) is host and self.coordinator is not None:
                self.coordinator.give(WorkerSaid(host.id, _decode.decode(data)))

        return deliver

    def heard_of(self, host: WorkerHost) -> Callable[[bytes], None]:
        """How a worker's heartbeat arrives; one that was given up for dead connects anew."""

        def deliver(_: bytes) -> None:
            coordinator = self.coordinator
            if self.workers.get(host.id) is not host or coordinator is None or not coordinator.alive:
                return
            if host.id in coordinator.core.live:
                coordinator.give(Heard(host.id))
            elif coordinator.core.generation >= 0:
                coordinator.give(WorkerJoined(host.id))

        return deliver

    def feed(self, slot: int) -> None:
        """A slot's requests stream has grown."""
        for host in list(self.workers.values()):
            host.feed(slot)


def limits_of(plan: SimulationPlan) -> Limits:
    """The deployment's limits."""
    return Limits(
        epoch_transactions_max=plan.epoch_transactions_max,
        slice_invocations=plan.slice_invocations,
        idempotency_keys_max=plan.idempotency_keys_max,
        invocations_max=plan.invocations_max,
    )

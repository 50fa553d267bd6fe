"""Everything that a simulation shares: time, network, log, store, and which processes live. Wiring only."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from proof.simulation.changes_seen import changes_seen
from proof.simulation.coordinator_process import CoordinatorProcess
from proof.simulation.faulty_store import FaultyStore
from proof.simulation.network import Network, PeerLinks
from proof.simulation.operators import Operators
from proof.simulation.plan import SimulationPlan
from proof.simulation.shared_log import SharedLog
from proof.simulation.versions import Versions
from proof.simulation.virtual_time import VirtualTime
from proof.simulation.worker_process import WorkerProcess
from styx.coordinator.barrier import PatchRounds
from styx.coordinator.control_events import LeaveAsked, WorkerArrived
from styx.coordinator.events import Heard, WorkerJoined, WorkerLeaving, WorkerLost, WorkerSaid
from styx.model.app import App
from styx.model.limits import MIB, Limits
from styx.protocol.messages import ToCoordinator
from styx.testing.reads import ReadSeen

NOTICE_S = 0.02
RESTART_S = 0.1
"""How long it takes at most to notice a broken connection."""
RESTART_S = 0.1
"""How long it takes until a coordinator's process that has ended is started again."""
DRAIN_S = 2.0
"""How long a worker that is told to end waits until it is let go."""

_decode: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(ToCoordinator)


class World:
    """`workers` are the living ones by process; `zombies` are coordinators that live although there is a newer
    one. `keep_log`: nothing is released, so that everything can be replayed.

    `intents` are the logged ones to make external calls, `outcomes` those of their ends, `external_runs` how often each
    was run; `cuts` counts functions that the watchdog ended, `passed_over` requests that waited for an epoch with room,
    `small_epochs` a worker's epochs that contention had kept small, `left` local transactions that left their slot;
    `patch_rounds` counts the rounds with patches of all coordinators.
    """

    def __init__(self, plan: SimulationPlan, app: App, seed: str, keep_log: bool) -> None:
        self.plan = plan
        self.app = app
        self.rng = Random(seed)
        self.time = VirtualTime()
        self.network = Network(self.time, self.rng, plan.slow_messages)
        self.read_network = Network(self.time, Random(f"reads {seed}"), plan.slow_messages)
        self.reads_seen: list[ReadSeen] = []
        self.changes_seen = changes_seen(plan)
        self.read_strictly = -1
        """The last epoch of which a strict read has ended."""
        self.strict_reads = 0
        self.log = SharedLog(self.time, self.rng, plan.log_delay_s)
        self.store = FaultyStore(self.time, self.rng)
        self.limits = limits_of(plan)
        self.keep_log = keep_log
        self.duplicating = False
        self.idle = False
        self.snapshots = 0
        self.cuts = 0
        self.passed_over = 0
        self.small_epochs = 0
        self.left = 0
        self.calls_given_up = 0
        self.patch_rounds = PatchRounds(*plan.patch_rounds)
        self.intents: set[bytes] = set()
        self.outcomes: dict[bytes, bytes] = {}
        self.external_runs: dict[bytes, int] = {}
        self.versions = Versions(plan, self.store.objects if plan.managed else None)
        self.operators = Operators(self)
        self.links = PeerLinks(self.time, self.rng, self.network)
        self.zombies: set[CoordinatorProcess] = set()
        self.stopped = False
        """The last coordinator has ended behind a held snapshot."""
        self.workers: dict[int, WorkerProcess] = {}
        self.coordinator: CoordinatorProcess | None = None
        self._incarnations = 0
        self._starts: dict[int, int] = {}

    def newest_app(self) -> App:
        """The version that the last marker names."""
        apps = self.versions.apps() if self.plan.cluster else {0: self.app}
        return apps[max(apps)]

    # Processes ---------------------------------------------------------------------------------------------

    def start_coordinator(self) -> None:
        """A coordinator process starts; it reads its metadata first."""
        if self.coordinator is None or not self.coordinator.alive:
            self._incarnations += 1
            plan = self.plan
            wanted = None if plan.auto else plan.wanted or plan.workers
            self.coordinator = CoordinatorProcess(
                self, self._incarnations, plan.slots, wanted, plan.snapshot_interval_s
            )

    def replace_coordinator(self, stay: set[int]) -> None:
        """Another coordinator takes over although the old one lives; these processes stay with that one."""
        self.coordinator = None
        for process in set(self.workers) - stay:
            self._register(process)
        self.start_coordinator()

    def coordinator_started(self) -> None:
        """The living workers connect to it."""
        for worker in list(self.workers):
            if not self.plan.cluster:
                self.join(worker)
            elif self.workers[worker].link not in self.zombies:
                self._register(worker)

    def start_worker(self, worker: int) -> None:
        """A worker process starts and connects."""
        if worker not in self.workers and self.plan.cluster:
            self._starts[worker] = self._starts.get(worker, 0) + 1
            self._register(worker)
        elif worker not in self.workers:
            self._incarnations += 1
            host = WorkerProcess(self, worker, self._incarnations, self.app, self.plan.slots, self.limits)
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

        if self.plan.cluster:
            self._lost(host)
            return

        def noticed() -> None:
            if worker not in self.workers and self.coordinator is not None:
                self.coordinator.give(WorkerLost(worker))

        self.time.after(self.rng.random() * NOTICE_S, noticed)

    def leave(self, process: int, away_s: float) -> None:
        """A worker process is told to end: it does when it is let go, or has waited too long; another one follows."""
        host = self.workers.get(process)
        if host is None or host.link is None:
            return
        coordinator = host.link

        def ends() -> None:
            if self.workers.get(process) is host:
                self.crash_worker(process)
                self.time.after(away_s, self.start_worker, process)

        host.let_go = ends
        asks = LeaveAsked(host.id) if self.plan.managed else WorkerLeaving(host.id)
        self.network.send(host.name, "coordinator", lambda _: coordinator.give(asks), b"")
        self.time.after(DRAIN_S, ends)

    def released(self, coordinator: CoordinatorProcess, number: int) -> None:
        """A coordinator lets a worker go."""
        host = self.numbered(number)
        if host is not None and host.link is coordinator:
            self.network.send(coordinator.name, host.name, lambda _: host.let_go(), b"")

    def crash_coordinator(self) -> None:
        """The coordinator process is killed."""
        if self.coordinator is not None:
            self.coordinator.crash()

    # Registrations in a cluster: each has a number of its own, and knows nothing of those before ----------------

    def _register(self, process: int) -> None:
        before = self.workers.pop(process, None)
        if before is not None:
            before.crash()
            self._lost(before)
        self._incarnations += 1
        number = self._incarnations
        host = WorkerProcess(self, number, number, self.app, self.plan.slots, self.limits)
        host.process = process
        self.workers[process] = host
        coordinator = self.coordinator
        if coordinator is None or not coordinator.alive or coordinator.core.generation < 0:
            return  # it registers when there is one
        host.link = coordinator

        host.start = address = f"process {process}, start {self._starts[process]}"

        def joined(_: bytes) -> None:
            if host.alive and self.plan.managed:
                coordinator.give(WorkerArrived(number, f"process {process}", address, address, "simulated"))
            elif host.alive:
                coordinator.give(WorkerJoined(number, address))

        self.network.send(host.name, "coordinator", joined, b"")

    def _lost(self, host: WorkerProcess) -> None:
        self.links.died(host, list(self.workers.values()))
        link = host.link
        if link is not None and not (host.expelled and self.plan.managed):
            self.time.after(self.rng.random() * NOTICE_S, lambda: link.give(WorkerLost(host.id)))

    def numbered(self, number: int) -> WorkerProcess | None:
        """The worker with this number."""
        if not self.plan.cluster:
            return self.workers.get(number)
        return next((host for host in self.workers.values() if host.id == number), None)

    def expelled(self, coordinator: CoordinatorProcess, number: int) -> None:
        """A coordinator has cut the worker's connection: it registers anew when it learns of that."""
        host = self.numbered(number) if self.plan.cluster else None
        if host is None or host.link is not coordinator:
            return

        host.expelled = True

        def learns() -> None:
            if self.workers.get(host.process) is host:
                self._register(host.process)

        self.time.at(max(self.time.now_s, host.frozen_until_s) + self.rng.random() * NOTICE_S, learns)

    def cut_off(self, coordinator: CoordinatorProcess, number: int) -> None:
        """A coordinator ends a worker's connection, which both ends notice."""
        self.time.after(self.rng.random() * NOTICE_S, lambda: coordinator.give(WorkerLost(number)))
        self.expelled(coordinator, number)

    def fenced(self, coordinator: CoordinatorProcess) -> None:
        """The log has told a coordinator that there is another one: it ends."""
        if coordinator.alive:
            coordinator.crash()
            self.zombies.discard(coordinator)
            for process, host in list(self.workers.items()):
                if host.link is coordinator:
                    self._register(process)
        if coordinator is self.coordinator:
            # A process that was replaced while it still read its metadata has taken over later than this one.
            self.time.after(RESTART_S, self.start_coordinator)

    # Connections to the coordinator --------------------------------------------------------------------------

    def told_by(self, host: WorkerProcess) -> Callable[[bytes], None]:
        """How a worker's message arrives."""

        def deliver(data: bytes) -> None:
            coordinator = host.link or self.coordinator
            if self.workers.get(host.process) is host and coordinator is not None:
                coordinator.give(WorkerSaid(host.id, _decode.decode(data)))

        return deliver

    def heard_of(self, host: WorkerProcess) -> Callable[[bytes], None]:
        """How a worker's heartbeat arrives; one that was given up for dead connects anew."""

        def deliver(_: bytes) -> None:
            coordinator = host.link or self.coordinator
            if self.workers.get(host.process) is not host or coordinator is None or not coordinator.alive:
                return
            if self.plan.cluster or host.id in coordinator.core.live:
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
        transaction_bytes_max=plan.invocations_max * (plan.call_bytes or MIB),
        epoch_transactions_max=plan.epoch_transactions_max,
        epoch_result_bytes_max=plan.epoch_result_bytes_max,
        slice_invocations=plan.slice_invocations,
        idempotency_keys_max=plan.idempotency_keys_max,
        invocations_max=plan.invocations_max,
    )

"""One life of the coordinator in a cluster: connections and bytes. A frame becomes an event, an effect a frame.

From reading the metadata to losing the log, or to being fenced by another coordinator. The control plane decides who
takes part, which version runs and who leaves.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NoReturn

import msgspec

from styx.cluster.asides import put_aside
from styx.cluster.coordinator.journal import ClusterJournal
from styx.cluster.coordinator.links import Links, WorkerLink
from styx.cluster.coordinator.metrics import CoordinatorCounters, moment
from styx.cluster.coordinator.status import Rates, SnapshotWatch
from styx.cluster.options import CoordinatorOptions
from styx.cluster.wire import (
    BUSY_FACT,
    GATEWAY,
    HEARTBEATS_PER_SILENCE,
    OPERATOR,
    WORKER,
    Answer,
    Busy,
    Code,
    CodeTaken,
    CoordinatorHears,
    Deploy,
    Deployment,
    Drain,
    Heartbeat,
    Leave,
    Offer,
    Owners,
    Released,
    Rollback,
    Scale,
    Serve,
    SetAside,
    StandBy,
    TurnedAway,
    Welcome,
    coordinator_hears,
    encode,
)
from styx.coordinator import control_events as control
from styx.coordinator.control_events import A_WORKER, ITSELF, Event, Package
from styx.coordinator.control_plane import ControlPlane
from styx.coordinator.events import (
    Expel,
    StateFound,
    StopEnded,
    StopWanted,
    Tick,
    WorkerLost,
    WorkerSaid,
)
from styx.coordinator.generation import Phase
from styx.deployment.package import read_header
from styx.deployment.package_format import PackageRefused
from styx.errors import EngineFailed, StyxError
from styx.host.background import Background
from styx.host.control_host import ControlBeginning, ControlHost, ControlPorts
from styx.host.coordinator_host import CoordinatorHost
from styx.host.event_dump import CoordinatorCore, leave_dump, temporary_path
from styx.host.event_log import EventLog, Item
from styx.host.passes import settle
from styx.host.ports import Objects
from styx.kafka.address import KafkaAddress
from styx.process.runtime import FACT
from styx.protocol.messages import SnapshotEnded, ToWorker
from styx.schema.description import AppDescription
from styx.store.base import Store
from styx.transport import Connection

TICK_SECONDS: Final = 0.05
PING_SECONDS: Final = 0.25
LOADING_STEPS: Final = ("loading", "loaded")
"""What a worker's heartbeat says while it has no slots yet."""

_log = logging.getLogger("styx.coordinator")


class CoordinatorSession:
    """`failed` ends it. `announce` publishes how clients route requests whenever the app changes."""

    def __init__(
        self,
        options: CoordinatorOptions,
        deployment: Deployment,
        secret: bytes,
        log: KafkaAddress,
        store: Store,
        background: Background,
        journal: ClusterJournal,
        announce: Callable[[AppDescription], None],
        counters: CoordinatorCounters,
        failed: Callable[[BaseException], None],
        recorded_runtime: str = "",
    ) -> None:
        self.deployment = deployment
        self._made_of = CoordinatorCore(
            deployment.n_slots,
            options.workers,
            options.snapshot_interval_s,
            options.silence_max_s,
            options.grace_s,
            recorded_runtime,
        )
        self.core = self._made_of.made()
        self.plane = ControlPlane(self.core, deployment.app, recorded_runtime)
        # Numbers must differ between lives of a coordinator: a worker may still dial a peer of an older one.
        self.links = Links(secrets.randbits(40) << 10)
        self.ticked_at_s = time.monotonic()
        self.snapshots = SnapshotWatch(store, background)
        self.rates = Rates()
        self.transactions = 0
        self._began: tuple[tuple[int, int], int] = ((-1, -1), -1)
        self.counters = counters
        self.journal = journal
        journal.may_emit = self.plane.rollout.may_emit
        objects = Objects(store, background.submit)
        protocol = CoordinatorHost(self.core, self, journal, objects, self, self.give)
        aside = lambda place, dry_run: put_aside(place, log, store, dry_run)  # noqa: E731 - it fits a line
        self._host = ControlHost(self.plane, protocol, ControlPorts(self, objects, self._opened, aside), self.give)
        self._options = options
        self._secret = secret
        self._announce = announce
        self._failed = failed
        self._told_itself: Callable[[bool, str], None] = _logged
        self._events: deque[Item] = deque()
        self._log = EventLog()
        self._settling = False
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._dump = temporary_path(f"{deployment.app}-coordinator")
        self._stop_ended: asyncio.Future[bool] | None = None

    def start(self, found: ControlBeginning) -> None:
        """Begins from what log and store say."""
        self._tick()
        self._host.begin(found)

    def stop(self) -> None:
        """Ends everything that this life holds."""
        self._halt()
        self._log.clear()
        self._end_of_stop(stored=False)
        if self._timer is not None:
            self._timer.cancel()
        self.journal.stop()
        self.snapshots.stop()
        self.links.close()

    def deploy(self, package: bytes, told: Callable[[bool, str], None]) -> None:
        """The process itself wants this package to run; `told` hears (whether it does, why not)."""
        self._told_itself = told
        self.give(control.PackageOffered(ITSELF, self._opened(package)))

    async def stop_orderly(self) -> bool:
        """Takes a last snapshot, behind which nothing begins; returns whether it has all that has run."""
        if self._stopped:
            return False
        ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._stop_ended = ended
        self.give(StopWanted())
        return await ended

    def _end_of_stop(self, stored: bool) -> None:
        if self._stop_ended is not None and not self._stop_ended.done():
            self._stop_ended.set_result(stored)

    # The core ----------------------------------------------------------------------------------------------

    def give(self, event: Event) -> None:
        """The event happens, behind what is happening already; what is then wanted is begun."""
        if self._stopped:
            return
        self._events.append((self._step, event, 0))
        if self._settling:
            return
        self._settling = True
        try:
            settle(self._events, self._log)
        except BaseException as error:  # noqa: BLE001 - a coordinator that has lost an event must not go on
            self._halt()
            if self._dump is not None and isinstance(error, Exception) and not isinstance(error, StyxError):
                leave_dump(self._dump, self.deployment.app, self._made_of, self._log.of(self._step), error)
            self._failed(error)
        self._settling = False

    def _halt(self) -> None:
        """Takes no more events."""
        self._stopped = True
        self._events.clear()

    def _step(self, event: Event) -> None:
        before = moment(self.core)
        effects = self.plane.step(event)
        self.counters.stepped(before, self.core, event, effects)
        for effect in effects:
            self._host.do(effect)
        if self.core.snapshots_completed > before.snapshots_completed:
            self.snapshots.completed(time.monotonic())
        if self.core.phase is Phase.RUNNING and before.phase is not Phase.RUNNING:
            replayed = self.core.replayed - before.replayed
            newest = self.core.ledger.newest
            self._began = (
                (-1, -1) if newest is None else (newest.generation, newest.epoch),
                self.core.epoch + replayed,
            )
            self._tell_of_generation(replayed)
            for gateway in self.links.gateways.values():
                gateway.send(encode(self._owners()))

    def _owners(self) -> Owners:
        """What gateways hear when a generation begins to run, and when they come; also what it began with."""
        core = self.core
        addresses = {worker: core.membership.addresses[worker] for worker in sorted(core.membership.members)}
        return Owners(core.generation, core.owners, addresses, core.app_version, *self._began)

    def _tell_of_generation(self, replayed: int) -> None:
        core = self.core
        what = f"recorded epochs to run again: {replayed}" if replayed else "nothing is replayed"
        _log.info("generation %d runs on %d workers; %s", core.generation, len(core.membership.members), what)

    def _tick(self) -> None:
        self.ticked_at_s = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)
        self.rates.sample(time.monotonic(), self.core.epoch, self.transactions)
        self.give(Tick(time.monotonic()))

    def _opened(self, package: bytes) -> Package | str:
        try:
            header = read_header(package, self._secret)
        except PackageRefused as error:
            return str(error)
        return Package(package, header.description, header.fingerprint)

    # Connections -------------------------------------------------------------------------------------------

    def accept(self, connection: Connection) -> None:
        """An authenticated peer."""
        role = connection.peer.role
        if role == WORKER and BUSY_FACT in connection.peer.facts:
            self._keep(connection, self.links.lifelines, self._hear_busy)
        elif role == WORKER:
            peer, link = connection.peer, self.links.register(connection)
            runtime = peer.facts.get(FACT, "")
            self.give(control.WorkerArrived(link.number, peer.name, peer.incarnation, peer.address, runtime))
        elif role == GATEWAY:
            self.give(control.GatewayArrived(self._keep(connection, self.links.gateways, lambda *_: None)))
        elif role == OPERATOR:
            self._keep(connection, self.links.operators, self._hear_operator)
        else:
            connection.abort(f"a {role} cannot register with the coordinator")

    def _keep(
        self, connection: Connection, among: dict[int, Connection], hear: Callable[[int, Connection, list[bytes]], None]
    ) -> int:
        """The connection stands among those of its kind until it is lost."""
        number = self.links.number()
        among[number] = connection

        def lost(_: Connection, reason: str) -> None:
            if among.pop(number, None) is not None and among is self.links.operators:
                self.give(control.OperatorGone(number))

        connection.start(partial(hear, number), lost, ping_seconds=PING_SECONDS)
        return number

    def _worker_gone(self, link: WorkerLink, reason: str) -> None:
        if self.links.workers.pop(link.number, None) is not None:
            worker = self.plane.roster.workers.get(link.number)
            if worker is not None and worker.released:
                _log.info("worker %s has left", link.connection.peer.name)
            else:
                _log.warning("worker %s is gone: %s", link.connection.peer.name, reason)
            self.give(WorkerLost(link.number))

    # Frames that come --------------------------------------------------------------------------------------

    def _hear_busy(self, number: int, connection: Connection, payloads: list[bytes]) -> None:
        for payload in payloads:
            message = coordinator_hears.decode(payload)
            if isinstance(message, Busy):
                self.links.busy(message)
                self.give(control.WorkerBusy(message.worker))

    def _hear(self, link: WorkerLink, message: CoordinatorHears) -> None:
        worker = link.number
        if isinstance(message, Heartbeat):
            self.transactions += message.ended - (0 if link.heartbeat is None else link.heartbeat.ended)
            link.heartbeat, link.heard_at_s = message, time.monotonic()
            loaded = message.step not in LOADING_STEPS
            self.give(control.WorkerBeat(worker, message.generation, loaded, message.operators))
        elif isinstance(message, CodeTaken):
            if message.problem:
                name = link.connection.peer.name
                _log.error("worker %s cannot run version %d of the app: %s", name, message.version, message.problem)
            self.give(control.CodeTaken(worker, message.version, message.problem))
        elif isinstance(message, Offer):
            self.give(control.PackageOffered(A_WORKER, self._opened(message.package)))
        elif isinstance(message, Leave):
            self.give(control.LeaveAsked(worker))
        elif isinstance(message, Deploy | Rollback | Scale | Drain | SetAside | Busy):
            link.connection.abort("workers may not send commands; use styx deploy, scale, drain or set-aside")
        else:
            self.give(WorkerSaid(worker, message))

    def _hear_operator(self, by: int, connection: Connection, payloads: list[bytes]) -> None:
        for payload in payloads:
            try:
                message = coordinator_hears.decode(payload)
            except msgspec.DecodeError as error:
                connection.abort(f"not a message: {error}")
                return
            if isinstance(message, Deploy):
                self.give(control.PackageOffered(by, self._opened(message.package), message.only_check))
            elif isinstance(message, Rollback):
                self.give(control.RollbackAsked(by, message.only_check))
            elif isinstance(message, Scale):
                self.give(control.ScaleAsked(by, message.workers))
            elif isinstance(message, Drain):
                self.give(control.DrainAsked(by, message.name))
            elif isinstance(message, SetAside):
                self.give(control.SetAsideAsked(by, message.place, message.dry_run))
            else:
                connection.abort("this connection takes commands only: deploy, scale, drain and set-aside")

    # Frames that go: `Members`, `Operator` and `Connections` -------------------------------------------------

    def _send(self, worker: int, message: object) -> None:
        link = self.links.workers.get(worker)
        if link is not None:
            link.connection.send(encode(message))

    def tell(self, worker: int, message: ToWorker) -> None:
        """As `Members.tell`."""
        self._send(worker, message)
        if isinstance(message, SnapshotEnded) and not message.complete:
            self.snapshots.failed(time.monotonic(), message.epoch)

    def expel(self, effect: Expel) -> None:
        """As `Members.expel`."""
        link = self.links.workers.pop(effect.worker, None)
        if link is not None:
            _log.warning("worker %s is expelled: %s", link.connection.peer.name, effect.reason)
            link.connection.abort(effect.reason)

    def let_go(self, worker: int) -> None:
        """As `Members.let_go`."""
        self._send(worker, Released())

    def found(self, effect: StateFound) -> None:
        """As `Operator.found`: the control plane has taken it."""

    def stopped(self, effect: StopEnded) -> None:
        """As `Operator.stopped`."""
        self._end_of_stop(effect.stored)

    def refuse(self, reason: str) -> NoReturn:
        """As `Operator.refuse`."""
        raise EngineFailed(reason)

    def admit(self, effect: control.Admit) -> None:
        """As `Connections.admit`."""
        link = self.links.workers[effect.worker]
        if link.connection.closed:
            self._worker_gone(link, "it did not wait")
            return

        def hear(_: Connection, payloads: list[bytes]) -> None:
            for payload in payloads:
                self._hear(link, coordinator_hears.decode(payload))

        link.connection.start(hear, lambda _, reason: self._worker_gone(link, reason), ping_seconds=PING_SECONDS)
        heartbeat_s = self._options.silence_max_s / HEARTBEATS_PER_SILENCE
        self._send(effect.worker, Welcome(link.number, self.deployment, heartbeat_s))

    def turn_away(self, effect: control.TurnAway) -> None:
        """As `Connections.turn_away`."""
        connection = self.links.turned_away(effect.worker, effect.reason)
        if connection is not None:
            connection.start(lambda *_: None, lambda *_: None)
            connection.send(encode(TurnedAway(effect.reason)))
            connection.close()

    def disconnect(self, effect: control.Disconnect) -> None:
        """As `Connections.disconnect`."""
        link = self.links.workers.get(effect.worker)
        if link is not None:
            link.connection.abort(effect.reason)

    def hand_out(self, effect: control.HandOut) -> None:
        """As `Connections.hand_out`."""
        self._send(effect.worker, Code(effect.version, effect.package.content))

    def stand_by(self, effect: control.StandBy) -> None:
        """As `Connections.stand_by`."""
        self._send(effect.worker, StandBy(effect.spare))

    def serve(self, effect: control.Serve) -> None:
        """As `Connections.serve`."""
        gateway = self.links.gateways.get(effect.gateway)
        if gateway is None:
            return
        gateway.send(encode(Serve(self.deployment)))
        if effect.package is not None:
            gateway.send(encode(Code(effect.version, effect.package.content)))
        if self.core.phase is Phase.RUNNING:
            gateway.send(encode(self._owners()))

    def announce(self, effect: control.Announce) -> None:
        """As `Connections.announce`."""
        self._announce(effect.package.description)
        for gateway in self.links.gateways.values():
            gateway.send(encode(Code(effect.version, effect.package.content)))

    def answer(self, effect: control.Answer) -> None:
        """As `Connections.answer`."""
        if effect.to == ITSELF:
            self._told_itself(effect.done, effect.text)
        elif effect.to == A_WORKER:
            _logged(effect.done, effect.text)
        elif effect.to in self.links.operators:
            answer = Answer(effect.done, effect.text, self.plane.rollout.version, effect.failed)
            self.links.operators[effect.to].send(encode(answer))

    def rollout_ended(self, effect: control.RolloutEnded) -> None:
        """As `Connections.rollout_ended`."""
        self.counters.deployment_ended(effect.done)


def _logged(done: bool, text: str) -> None:
    (_log.info if done else _log.error)("the app that a worker offers: %s", text)

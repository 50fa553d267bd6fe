"""One life of the coordinator: its core, the workers that have registered, and the versions of the app.

From reading the metadata to losing the log, or to being fenced by another coordinator. Hands messages and time to the
core and its decisions out; what may be deployed is `Deploying`'s to say. Never sees a request.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from functools import partial
from operator import contains
from typing import Final, NoReturn

import msgspec

from styx.cluster.background import Background
from styx.cluster.coordinator.counters import Counters, moment
from styx.cluster.coordinator.departures import Departures
from styx.cluster.coordinator.deploying import Answering, Awaited, Deploying, Stage, settled
from styx.cluster.coordinator.journal import ClusterJournal
from styx.cluster.coordinator.links import Links, WorkerLink
from styx.cluster.coordinator.rates import Rates
from styx.cluster.coordinator.runtimes import Runtimes
from styx.cluster.coordinator.setting_aside import SettingAside
from styx.cluster.coordinator.snapshot_watch import SnapshotWatch
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
    Rollback,
    Scale,
    Serve,
    SetAside,
    TurnedAway,
    Welcome,
    coordinator_hears,
    encode,
)
from styx.coordinator.coordinator import Coordinator, Phase
from styx.coordinator.events import (
    DeployWanted,
    Event,
    Expel,
    Heard,
    Started,
    StateFound,
    StopWanted,
    Tick,
    WorkerJoined,
    WorkerLost,
    WorkerSaid,
    WorkersWanted,
)
from styx.deployment import versions
from styx.deployment.package import read_header
from styx.deployment.package_format import PackageHeader, PackageRefused
from styx.errors import EngineFailed
from styx.host.coordinator_host import CoordinatorHost
from styx.host.ports import Objects
from styx.kafka.address import KafkaAddress
from styx.protocol.messages import SnapshotEnded, ToWorker
from styx.store.base import Store
from styx.transport import Connection

TICK_SECONDS: Final = 0.05
PING_SECONDS: Final = 0.25

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
        announce: Callable[[PackageHeader], None],
        counters: Counters,
        failed: Callable[[BaseException], None],
        recorded_runtime: str = "",
    ) -> None:
        self.deployment = deployment
        self.core = Coordinator(
            deployment.n_slots, options.workers, options.snapshot_interval_s, options.silence_max_s, options.grace_s
        )
        # Numbers must differ between lives of a coordinator: a worker may still dial a peer of an older one.
        self.links = Links(secrets.randbits(40) << 10)
        self.departures = Departures(self.links, self.core, self.give)
        self.setting_aside = SettingAside(self.links, log, store, background)
        self.ticked_at_s = time.monotonic()
        self.snapshots = SnapshotWatch(store, background)
        self.rates = Rates()
        self.transactions = 0
        self.counters = counters
        self.journal = journal
        self._host = CoordinatorHost(self.core, self, journal, Objects(store, background.submit), self, self.give)
        self.deploying: Deploying | None = None
        self.active: tuple[int, PackageHeader, bytes] | None = None
        self._options = options
        self._secret = secret
        self._store = store
        self._background = background
        self._announce = announce
        self._failed = failed
        self.runtimes = Runtimes(store, background, recorded_runtime, self._turn_away)
        self._checks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False

    def start(self, started: Started, package: bytes | None) -> None:
        """Begins; `package` is the version that `started` names, None if none was ever deployed."""
        if package is not None:
            self._activate(started.app_version, package)
        self._tick()
        self.give(started)

    def stop(self) -> None:
        """Ends everything that this life holds."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        self.journal.stop()
        self.snapshots.stop()
        self.links.close()

    # The core ----------------------------------------------------------------------------------------------

    def give(self, event: Event) -> None:
        """The event happens to the core; what it wants done is begun."""
        if self._stopped:
            return
        try:
            before = moment(self.core)
            effects = self.core.step(event)
            self.counters.stepped(before, self.core, event, effects)
            for effect in effects:
                self._host.do(effect)
            if self.core.snapshots_completed > before.snapshots_completed:
                self.snapshots.completed(time.monotonic())
            if self.core.phase is Phase.RUNNING and before.phase is not Phase.RUNNING:
                self._tell_of_generation(self.core.replayed - before.replayed)
        except BaseException as error:  # noqa: BLE001 - a coordinator that has lost an event must not go on
            self._failed(error)

    def tell(self, worker: int, message: ToWorker) -> None:
        """As `Members.tell`."""
        link = self.links.workers.get(worker)
        if link is not None:
            link.connection.send(encode(message))
        if isinstance(message, SnapshotEnded) and not message.complete:
            self.snapshots.failed(time.monotonic(), message.epoch)

    def let_go(self, worker: int) -> None:
        """As `Members.let_go`."""
        self.departures.released(worker)

    def refuse(self, reason: str) -> NoReturn:
        """As `Operator.refuse`."""
        raise EngineFailed(reason)

    def _tell_of_generation(self, replayed: int) -> None:
        core = self.core
        what = f"recorded epochs to run again: {replayed}" if replayed else "nothing is replayed"
        _log.info("generation %d runs on %d workers; %s", core.generation, len(core.membership.members), what)

    def _tick(self) -> None:
        self.ticked_at_s = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)
        self.rates.sample(time.monotonic(), self.core.epoch, self.transactions)
        self.give(Tick(time.monotonic()))
        self.departures.look()
        if self.deploying is not None:
            self._deploy_further(self.deploying)

    def expel(self, effect: Expel) -> None:
        """As `Members.expel`."""
        link = self.links.workers.pop(effect.worker, None)
        if link is not None:
            _log.warning("worker %s is expelled: %s", link.connection.peer.name, effect.reason)
            link.connection.abort(effect.reason)

    def want_stop(self) -> None:
        """Takes a last snapshot soon, and lets no epoch begin behind it."""
        self.give(StopWanted())

    # Connections -------------------------------------------------------------------------------------------

    def accept(self, connection: Connection) -> None:
        """An authenticated peer."""
        role = connection.peer.role
        if role == WORKER and BUSY_FACT in connection.peer.facts:
            self._keep(connection, self.links.lifelines, self._hear_busy)
        elif role == WORKER:
            self.runtimes.admit(connection, self._accept_worker)
        elif role == GATEWAY:
            self._accept_gateway(connection)
        elif role == OPERATOR:
            self._keep(connection, self.links.operators, self._hear_operator)
        else:
            connection.abort(f"the coordinator has nothing to say to a {role}")

    def _accept_worker(self, connection: Connection) -> None:
        link = self.links.register(connection)

        def hear(_: Connection, payloads: list[bytes]) -> None:
            for payload in payloads:
                self._hear(link, coordinator_hears.decode(payload))

        connection.start(hear, lambda _, reason: self._worker_gone(link, reason), ping_seconds=PING_SECONDS)
        heartbeat_s = self._options.silence_max_s / HEARTBEATS_PER_SILENCE
        connection.send(encode(Welcome(link.number, self.deployment, heartbeat_s)))
        self.departures.registered(link)
        if self.active is not None:
            connection.send(encode(Code(self.active[0], self.active[2])))
        if self.deploying is not None and self.deploying.handed:
            connection.send(encode(Code(self.deploying.version, self.deploying.package)))

    def _turn_away(self, connection: Connection, reason: str) -> None:
        connection.start(lambda *_: None, lambda *_: None)
        connection.send(encode(TurnedAway(reason)))
        connection.close()

    def _worker_gone(self, link: WorkerLink, reason: str) -> None:
        if self.links.workers.pop(link.number, None) is not None:
            if link.released:
                _log.info("worker %s has left", link.connection.peer.name)
            else:
                _log.warning("worker %s is gone: %s", link.connection.peer.name, reason)
            if link.joined:
                self.give(WorkerLost(link.number))

    def _accept_gateway(self, connection: Connection) -> None:
        self._keep(connection, self.links.gateways, lambda *_: None)
        connection.send(encode(Serve(self.deployment)))
        if self.active is not None:
            connection.send(encode(Code(self.active[0], self.active[2])))

    def _keep(
        self, connection: Connection, among: list[Connection], hear: Callable[[Connection, list[bytes]], None]
    ) -> None:
        """The connection stands among those of its kind until it is lost."""
        among.append(connection)
        lost = lambda *_: among.remove(connection) if connection in among else None  # noqa: E731 - it fits a line
        connection.start(hear, lost, ping_seconds=PING_SECONDS)

    def _hear_busy(self, connection: Connection, payloads: list[bytes]) -> None:
        for payload in payloads:
            message = coordinator_hears.decode(payload)
            if isinstance(message, Busy) and self.links.busy(message):
                self.give(Heard(message.worker))

    def _hear(self, link: WorkerLink, message: CoordinatorHears) -> None:
        if isinstance(message, Heartbeat):
            self.transactions += message.ended - (0 if link.heartbeat is None else link.heartbeat.ended)
            link.heartbeat, link.heard_at_s = message, time.monotonic()
            self.give(Heard(link.number))
        elif isinstance(message, CodeTaken):
            self._code_taken(link, message)
        elif isinstance(message, Offer):
            if self.active is None and self.deploying is None:
                self.deploy(message.package, _logged)
        elif isinstance(message, Leave):
            self.departures.leave(link)
        elif isinstance(message, Deploy | Rollback | Scale | Drain | SetAside | Busy):
            link.connection.abort("a worker gives no orders")
        else:
            self.give(WorkerSaid(link.number, message))

    def _code_taken(self, link: WorkerLink, message: CodeTaken) -> None:
        if message.problem:
            link.refused[message.version] = message.problem
            _log.error(
                "worker %s cannot run version %d of the app: %s",
                link.connection.peer.name,
                message.version,
                message.problem,
            )
            return
        link.taken.add(message.version)
        self._join(link)

    def _join(self, link: WorkerLink) -> None:
        """The worker becomes known to the core once it can run what runs."""
        if link.joined or link.leaving or self.active is None or self.active[0] not in link.taken:
            return
        deploying = self.deploying
        if deploying is None or deploying.stage is not Stage.SWITCHING or deploying.version in link.taken:
            link.joined = True
            self.give(WorkerJoined(link.number, link.connection.peer.address))

    def _hear_operator(self, connection: Connection, payloads: list[bytes]) -> None:
        def answer(done: bool, text: str) -> None:
            connection.send(encode(Answer(done, text, 0 if self.active is None else self.active[0])))

        awaited = partial(contains, self.links.operators, connection)
        for payload in payloads:
            try:
                message = coordinator_hears.decode(payload)
            except msgspec.DecodeError as error:
                connection.abort(f"not a message: {error}")
                return
            if isinstance(message, Deploy):
                self.deploy(message.package, answer, awaited if message.only_check else None)
            elif isinstance(message, Rollback):
                self._rollback(answer, awaited if message.only_check else None)
            elif isinstance(message, Scale):
                self._scale(message.workers, answer)
            elif isinstance(message, Drain):
                self.departures.drain(message.name, answer)
            elif isinstance(message, SetAside):
                self.setting_aside.ask(message, answer)
            else:
                connection.abort("an operator deploys, scales, drains and sets aside")

    # The app's versions ------------------------------------------------------------------------------------

    def deploy(self, package: bytes, answer: Answering, awaited: Awaited | None = None, back: bool = False) -> None:
        """Begins a deployment, or with `awaited` only finds out whether it could be, for as long as somebody waits for
        that; or says why not. `back`: the package ran before the present one.
        """
        if self.deploying is not None:
            answer(False, "another deployment is under way; wait for its end")
            return
        try:
            header = read_header(package, self._secret)
        except PackageRefused as error:
            answer(False, str(error))
            return
        if header.description.name != self.deployment.app:
            answer(
                False,
                f"this deployment is of app {self.deployment.app!r}, and the package holds {header.description.name!r}",
            )
            return
        if self.active is not None and self.active[1].fingerprint == header.fingerprint:
            answer(True, f"version {self.active[0]} runs already, and is this very code")
            return
        self.deploying = Deploying(package, header, answer, awaited, back)
        self._deploy_further(self.deploying)

    def _rollback(self, answer: Answering, awaited: Awaited | None) -> None:
        number = 0 if self.active is None else self.active[0]

        def loaded(package: bytes | None) -> None:
            if package is None:
                answer(False, "there is no version before the present one")
            else:
                self.deploy(
                    package,
                    lambda done, text: answer(
                        done, text.replace(" runs", f" runs, with the code from before version {number}", 1)
                    ),
                    awaited,
                    back=True,
                )

        self._background.submit(
            f"loading the version before {number}",
            lambda: versions.load_version_before(self._store, number),
            loaded,
            lambda error: answer(False, f"the store is out of reach: {error}"),
        )

    def _deploy_further(self, deploying: Deploying) -> None:
        if deploying.given_up:
            _log.info("nobody waits for the check of a version any more: it has ended")
            self.deploying = None
            self.give(DeployWanted(self.core.app_version))
        elif deploying.stage is Stage.CHECKING:
            self._check(deploying)
        elif deploying.stage is Stage.HANDING_OUT:
            ready = deploying.handed_out(self.links.workers.values())
            if isinstance(ready, str):
                self._deployed(deploying, False, ready)
            elif ready:
                deploying.stage = Stage.SWITCHING
                self.give(DeployWanted(deploying.version, deploying.only_check))
        elif deploying.stage is Stage.SWITCHING and self._switched(deploying.version):
            self._activate(deploying.version, deploying.package)
            self._deployed(deploying, True, deploying.done())

    def found(self, effect: StateFound) -> None:
        """As `Operator.found`."""
        deploying = self.deploying
        if deploying is None or deploying.version != effect.version:
            return
        refusal = deploying.found(effect.findings)
        if refusal is not None:
            self._deployed(deploying, False, refusal)
        elif deploying.only_check:
            self._deployed(deploying, True, deploying.done())

    def _check(self, deploying: Deploying) -> None:
        workers = self.links.workers
        members = [workers[number] for number in self.core.membership.members if number in workers]
        if self.active is not None and not settled(self.core, members):
            return
        reason = deploying.may_replace(None if self.active is None else self.active[1], members)
        if reason is not None:
            self._deployed(deploying, False, reason)
            return
        deploying.stage = Stage.STORING
        if deploying.only_check:
            self._checks += 1
            self._hand_out(deploying, -self._checks)
            return

        def stored(version: int) -> None:
            self._hand_out(deploying, version)

        self._background.submit(
            "storing a version of the app",
            lambda: versions.store_version(self._store, deploying.package),
            stored,
            lambda error: self._deployed(deploying, False, f"the store is out of reach: {error}"),
        )

    def _hand_out(self, deploying: Deploying, version: int) -> None:
        deploying.version = version
        deploying.stage = Stage.HANDING_OUT
        for link in self.links.workers.values():
            link.connection.send(encode(Code(version, deploying.package)))

    def _switched(self, version: int) -> bool:
        """The version runs, and a coordinator that starts anew would find it; the first one runs once it is there."""
        durable = self.core.phase in (Phase.LOADING, Phase.RUNNING) or self.active is None
        return self.core.app_version == version and durable

    def _deployed(self, deploying: Deploying, done: bool, text: str) -> None:
        self.deploying = None
        if not deploying.only_check:
            self.counters.deployment_ended(done)
        deploying.answer(done, text)

    def _activate(self, version: int, package: bytes) -> None:
        header = read_header(package, self._secret)
        self.active = (version, header, package)
        self._announce(header)
        self._background.submit(
            f"noting that version {version} runs",
            lambda: versions.note_running(self._store, version),
            lambda _: None,
            lambda _: None,
        )
        for gateway in self.links.gateways:
            gateway.send(encode(Code(version, package)))
        for link in list(self.links.workers.values()):
            self._join(link)

    # The number of workers ---------------------------------------------------------------------------------

    def _scale(self, workers: int, answer: Answering) -> None:
        n_slots = self.deployment.n_slots
        if self._options.workers is None:
            answer(
                False,
                "the coordinator was started with --workers auto, and all workers share the slots: "
                "start or stop workers instead",
            )
            return
        if not 1 <= workers <= n_slots:
            answer(False, f"{n_slots} slots can be shared by 1 to {n_slots} workers, not by {workers}")
            return
        self.give(WorkersWanted(workers))
        answer(True, f"workers wanted: {workers}; slots move once they are there")


def _logged(done: bool, text: str) -> None:
    (_log.info if done else _log.error)("the app that a worker offers: %s", text)

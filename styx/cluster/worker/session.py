"""One registration of a worker: its core, and the resources for the core's effects, until the coordinator is lost.

Messages and frames become events of the core. The effects of each generation go to the resources of that generation.
All of it happens in passes, and so do signs of life. A worker whose passes have stopped, for any reason, is silent and
is replaced.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from typing import Final

from styx.cluster.wire import (
    HEARTBEATS_PER_SILENCE,
    Code,
    CodeTaken,
    Heartbeat,
    Leave,
    Released,
    StandBy,
    TurnedAway,
    Welcome,
    encode,
    peer_hears,
    worker_hears,
)
from styx.cluster.worker.check_pace import CheckPace
from styx.cluster.worker.epoch_watch import TimedSteps
from styx.cluster.worker.generation import Generation
from styx.cluster.worker.lifeline import Lifeline
from styx.cluster.worker.node import Node
from styx.cluster.worker.peers import Peers
from styx.cluster.worker.reading import WorkerReads
from styx.cluster.worker.recovery import ReplayWatch
from styx.host.alarm import Alarm, wall_clock_us
from styx.host.event_dump import temporary_path
from styx.host.passes import Passes
from styx.host.ports import Objects, WorkerPorts
from styx.host.worker_host import WorkerHost
from styx.kafka.event_topics import event_topic
from styx.kafka.tail import RequestFeed
from styx.log.base import Arrival
from styx.model.app import App
from styx.model.limits import peer_silence_seconds
from styx.protocol.frames import Frame
from styx.protocol.messages import Broken, CheckState, Join, Recover, ToCoordinator
from styx.transport import Connection
from styx.worker.events import CoordinatorSaid, Event, FrameArrived, RequestsArrived, SendFrame, Step
from styx.worker.worker import Worker

WAITING_BYTES_MAX: Final = 32 * 1024 * 1024
"""Limit on the waiting requests of one slot in bytes. A replay has no limit, because an epoch needs all its
requests.
"""
WAITING_RECORDS_MAX: Final = 20_000
"""Limit on the requests of one slot that have arrived and are in no epoch. Beyond it the slot's fetching pauses."""

PEER_LOSS_SECONDS: Final = 0.1
"""The delay between the loss of a connection to a peer and the report."""

_WAITS: Final = "it waits for its share of the slots"
_TAKES_PART: Final = "it takes part"
_STANDS_BY: Final = "it stands by"

_decode = peer_hears.decode
_log = logging.getLogger("styx.worker")


class WorkerSession:
    """One registration. `ended` gets the reason for its end: the connection was lost, or the worker cannot go on.

    `generation` has the resources of the present generation, None before the first; `give` takes the results of work
    that was under way for it.
    """

    def __init__(
        self, node: Node, link: Connection, welcome: Welcome, ended: Callable[[str, BaseException | None], None]
    ) -> None:
        self.node = node
        self.deployment = welcome.deployment
        silence_s = peer_silence_seconds(self.deployment.limits)
        self.peers = Peers(node.security, node.hello_to_peers, self._frames, self._peer_lost, silence_s)
        self._link = link
        self._ended = ended
        self._number = welcome.worker
        self._heartbeat_s = welcome.heartbeat_s
        self.silence_max_s = welcome.heartbeat_s * HEARTBEATS_PER_SILENCE
        self.beat_at_s = time.monotonic()
        self._beat_due = False
        self._apps: dict[int, App] = {}
        self._version = 0
        self._announced = -1
        self.generation: Generation | None = None
        self._paused: set[int] = set()
        self._loop = asyncio.get_running_loop()
        deployment = self.deployment
        self._watch = node.watch
        no_app = App(deployment.app, [])
        self.core = Worker(self._number, no_app, deployment.n_slots, deployment.limits, node.reports.notes, self._watch)
        self._host: WorkerHost | None = None
        self._alarm = Alarm(wall_clock_us)
        self._part = _WAITS
        self._lifeline: Lifeline | None = None
        if node.coordinator:
            self._lifeline = Lifeline(node.coordinator, node.security, node.hello(), self._number)
            self._lifeline.start()
        busy = None if self._lifeline is None else self._lifeline.busy
        self._passes = Passes(
            self.core, self, f" --coordinator {node.coordinator}", busy, temporary_path(deployment.app)
        )
        self.give = self._passes.to_worker
        self.reads = WorkerReads(
            self.core, self.peers, node.reports, node.counters, self.give, self._reads_wait, silence_s
        )
        self._pace = CheckPace(self.core, self.give)
        self._timed = TimedSteps(self.core, self._watch, self._pace.took)
        self._passes.start(self._step)
        self._beat()
        if node.departure.leaving:
            self.leave()

    def leave(self) -> None:
        """Asks the coordinator to give the slots to other workers."""
        self._link.send(encode(Leave()))

    def unready(self) -> str | None:
        """Why this worker takes no part; None if it does, or stands by because enough other workers do."""
        if self.node.departure.leaving:
            return "it leaves: its slots move to other workers"
        if self._part == _TAKES_PART and self.core.reached in (Step.LOADING, Step.LOADED):
            return "its slots are being loaded"
        return _WAITS if self._part == _WAITS else None

    @property
    def serving(self) -> Worker | None:
        """The core while it takes part. What it holds behind that is of the past: others have its slots then."""
        return self.core if self._part == _TAKES_PART else None

    def close(self) -> None:
        """Ends the registration and frees its resources. No further message is taken or sent."""
        self._passes.stop()
        self._beat_timer.cancel()
        self._pace.stop()
        if self.generation is not None:
            self.generation.end()
        self.reads.close()
        self.peers.close()
        self._link.abort("the worker's registration is over")
        # The session is part of reference circles, and the garbage collector of this process hardly ever runs.
        self._alarm.stop()
        self.core.end()
        self._passes.watchdog.stop()
        if self._lifeline is not None:
            self._lifeline.stop()
        self._watch.abandons()

    # What arrives ------------------------------------------------------------------------------------------

    def hear(self, payload: bytes) -> None:
        """Takes a message of the coordinator."""
        message = worker_hears.decode(payload)
        if isinstance(message, Code):
            self._take_code(message)
        elif isinstance(message, Recover):
            self._part = _TAKES_PART
            self._generation_announced(message)
        elif isinstance(message, CheckState):
            self._check_state(message)
        elif isinstance(message, StandBy):
            self._part = _STANDS_BY if message.spare else _WAITS
        elif isinstance(message, Released):
            self.node.departure.let_go()
        else:
            assert not isinstance(message, Welcome | TurnedAway)
            if isinstance(message, Join) and self.generation is not None:
                self.generation.gate.open()
            self._passes.to_worker(CoordinatorSaid(message))

    def _take_code(self, code: Code) -> None:
        try:
            app = self.node.app_of(code)
            for event in app.events:
                event_topic(self.deployment.app, event)
        except Exception as error:  # noqa: BLE001 - other people's code: it can raise anything
            problem = f"{type(error).__name__}: {error}"
            _log.error("version %d of the app cannot run here: %s", code.version, problem)
        else:
            # The version that runs here, the last one offered, which other workers may run, and the next one.
            kept = {self._version, max(self._apps, default=code.version)}
            self._apps = {version: self._apps[version] for version in kept & self._apps.keys()} | {code.version: app}
            problem = ""
        self._link.send(encode(CodeTaken(code.version, problem)))

    def _generation_announced(self, message: Recover) -> None:
        if message.generation <= self._announced:
            return
        if message.app_version not in self._apps:
            # The coordinator does not tell a stand-by worker which of several deployments took effect. A new
            # registration does.
            self._ended(f"version {message.app_version} of the app is not here any more", None)
            return
        self._announced, self._version = message.generation, message.app_version
        self._passes.to_worker(CoordinatorSaid(message))

    def _step(self, event: Event) -> None:
        """Steps the core. Before a generation begins in the core, the resources of the one before are ended, so that no
        effect of an earlier event uses resources of the new generation.
        """
        if isinstance(event, CoordinatorSaid) and isinstance(event.message, Recover):
            self._begin(event.message)
        if self._host is not None:
            self._host.step(event)

    def _begin(self, message: Recover) -> None:
        if self.generation is not None:
            self.generation.end()
        self._paused = set()
        self.core.run_app(self._apps[self._version])
        generation = self.generation = Generation(self, message)
        objects = Objects(self.node.store, self.node.background.submit)
        findings = ReplayWatch(self.node, message, self.deployment.reply_partitions)
        ports = WorkerPorts(self, generation, objects, generation, findings, generation.externals, self._alarm)
        self._host = WorkerHost(self._timed, ports, generation.give)

    def _check_state(self, message: CheckState) -> None:
        if message.version is not None:
            if message.version not in self._apps:
                self._ended(f"version {message.version} of the app, which is to be checked, is not here", None)
                return
            self.core.offer_app(message.version, self._apps[message.version])
        self._passes.to_worker(CoordinatorSaid(message))

    def _frames(self, peer: int, payloads: list[bytes]) -> None:
        watch, counters = self._watch, self.node.counters
        started_s = watch.clock() if watch.sampling else 0.0
        for payload in payloads:
            frame = _decode(payload)
            counters.bytes_received += len(payload)
            if isinstance(frame, Frame):
                counters.messages_received += len(frame.messages)
                self._passes.to_worker(FrameArrived(frame), len(payload))
            else:
                self.reads.hear_peer(peer, frame)
        counters.frames_received += len(payloads)
        if watch.sampling:
            watch.breakdown.moved(watch.clock() - started_s)

    def deliver(self, generation: int, arrived: dict[int, list[Arrival]]) -> None:
        """Takes requests by slot that were fetched for a generation."""
        left = len(arrived)
        for slot, arrivals in arrived.items():
            left -= 1
            n_bytes = sum([len(payload) for _, _, payload in arrivals])
            self._passes.to_worker(RequestsArrived(generation, slot, arrivals, left > 0), n_bytes)

    def broken(self, generation: Generation, peer: int, reason: str) -> None:
        """Reports a lost peer: the generation cannot go on, and the coordinator begins another one."""
        if generation is self.generation and not self._passes.stopped:
            self._link.send(encode(Broken(generation.number, peer, reason)))

    def _peer_lost(self, peer: int, reason: str) -> None:
        self.reads.peer_lost(peer)
        generation = self.generation
        if generation is not None and generation.connected:
            # If the peer is dead, the coordinator notices by itself, and one new generation is enough.
            self._loop.call_later(PEER_LOSS_SECONDS, self.broken, generation, peer, reason)

    def _reads_wait(self) -> None:
        """There is something to do for reads: they are part of all passes from the first time on."""
        self._passes.beside(self.reads.run)

    # Passes ------------------------------------------------------------------------------------------------

    def gather(self) -> None:
        """As `Surroundings.gather`: events are given as they come."""

    def flush(self) -> int:
        """As `Surroundings.flush`: the appender sends by itself."""
        return 0 if self.generation is None else self.generation.waiting_bytes

    def failed(self, what: str, error: BaseException) -> None:
        """As `Surroundings.failed`."""
        self._ended("the protocol failed", error)

    def after_pass(self) -> bool:
        """As `Surroundings.after_pass`."""
        core = self.core
        self._pace.go_on()
        sent_us = self._watch.pass_ended(core.executor, core.runnable)
        if sent_us and self.generation is not None:
            self.generation.replies.when_durable(lambda: self._watch.durable(sent_us))
        if self._beat_due:
            self._beat_due = False
            self.beat_at_s = time.monotonic()
            self._link.send(encode(self._heartbeat()))
        if self.generation is not None and self.generation.feed is not None:
            self._hold_up(self.generation.feed)
        return False

    def _hold_up(self, feed: RequestFeed) -> None:
        """Pauses the fetching of slots with too many waiting requests."""
        bytes_max = sys.maxsize if self.core.replaying else WAITING_BYTES_MAX
        for slot, (waiting, n_bytes) in self.core.waiting().items():
            many = waiting > WAITING_RECORDS_MAX or n_bytes > bytes_max
            if many and slot not in self._paused:
                self._paused.add(slot)
                feed.pause(slot)
            elif slot in self._paused and waiting < WAITING_RECORDS_MAX // 2 and n_bytes < bytes_max // 2:
                self._paused.discard(slot)
                feed.resume(slot)

    def _beat(self) -> None:
        self._beat_due = True
        self._passes.wake()
        self._beat_timer = self._loop.call_later(self._heartbeat_s, self._beat)

    def _heartbeat(self) -> Heartbeat:
        core, generation = self.core, self.generation
        lag = 0 if generation is None or generation.feed is None else sum(generation.feed.lag().values())
        return Heartbeat(
            core.generation,
            core.epoch,
            core.reached.name.lower(),
            core.backlog,
            core.unfinished,
            core.transactions_ended,
            self.node.counters.poison,
            lag,
            self.node.memory(),
            *core.holdings(),
            self.node.strangers,
            self.node.refused(),
            self.node.reports.carried.most(),
            self.node.reports.left.by_function,
        )

    # The core's world, but for what a generation has -----------------------------------------------------------

    def tell(self, message: ToCoordinator) -> None:
        """As `Links.tell`."""
        self._link.send(encode(message))
        self._watch.said(message)

    def send(self, effect: SendFrame) -> None:
        """As `Links.send`."""
        watch, counters = self._watch, self.node.counters
        started_s = watch.clock() if watch.sampling else 0.0
        payload = encode(effect.frame)
        self.peers.send(effect.peer, payload)
        counters.frames_sent += 1
        counters.messages_sent += len(effect.frame.messages)
        counters.bytes_sent += len(payload)
        if watch.sampling:
            watch.breakdown.moved(watch.clock() - started_s)

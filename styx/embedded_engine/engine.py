"""The embedded engine: one coordinator, one worker, a log and a store on the caller's event loop.

Start is the ordinary recovery, whatever is there to recover, and the protocol cores do not know that they are embedded.
The engine watches itself: any failure of a pass, of the log or of the store's thread ends it, tells everybody who
waits, and is logged once. All of its methods belong to the event loop it was started on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from styx.coordinator.events import DeployWanted, SnapshotWanted, Started, Tick, WorkerJoined
from styx.coordinator.generation import Phase
from styx.deployment.claim import Claim
from styx.embedded_engine.app_change import AppChange, Stage
from styx.embedded_engine.changes import EngineChanges
from styx.embedded_engine.committed_state import CommittedState
from styx.embedded_engine.drive import Drive
from styx.embedded_engine.engine_log import EngineLog, ExternalLog
from styx.embedded_engine.event_stream import EventStream
from styx.embedded_engine.intake import EngineRouter, RequestIntake
from styx.embedded_engine.metrics import NOTHING_YET, EngineCounters, render
from styx.embedded_engine.mode import Mode
from styx.embedded_engine.options import N_SLOTS_DEFAULT, SNAPSHOT_SECONDS_DEFAULT, check_options
from styx.embedded_engine.ports import WORKER_ID, EngineJournal, NoOperator, OneMember, OwnCoordinator, OwnLog
from styx.embedded_engine.reads import EngineReads
from styx.embedded_engine.recovery import ReplayWatch, Start
from styx.embedded_engine.storage import Storage
from styx.errors import ConfigurationError, EngineFailed, NotSent, StyxError
from styx.host.alarm import Alarm
from styx.host.background import Background
from styx.host.coordinator_host import CoordinatorHost
from styx.host.event_dump import CoordinatorCore
from styx.host.external_functions import ExternalFunctions
from styx.host.ports import Objects, WorkerPorts
from styx.host.waiters import Receiver
from styx.host.worker_host import WorkerHost
from styx.log.base import Stream
from styx.messages import Reply, ReplyRecord
from styx.model.app import App
from styx.model.freshness import Freshness
from styx.model.limits import Limits
from styx.model.request import Placed, RequestMaker
from styx.reports.function_reports import FunctionReports
from styx.snapshot.manifest import read_beginning
from styx.worker.blame import notes_of
from styx.worker.epoch import Watch
from styx.worker.events import ClockTold, ReportPoison, Step
from styx.worker.worker import Worker

CLOSE_SECONDS_MAX: Final = 30.0
"""How long `close` waits for requests in flight, and again for the last snapshot."""

_log = logging.getLogger("styx.embedded")


class EmbeddedEngine(CommittedState):
    """An engine for `app` in `data_dir` (None: in memory, gone when it is closed).

    Parameters
    ----------
    n_slots: over how many slots entities are spread; fixed for the life of a data directory.
    limits: the deployment's limits; those that decide outcomes may change only after a clean `close`.
    snapshot_interval: seconds between snapshots while there is something new.
    keep_log: never release log records, so that the whole history can be read: for audits and tests.
    accept_changed_replay: run recorded epochs on `app` even if another code ran them, and go on where a reply would be
        another one than was given; each of these is logged.
    """

    def __init__(
        self,
        app: App,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        n_slots: int = N_SLOTS_DEFAULT,
        limits: Limits | None = None,
        snapshot_interval: float = SNAPSHOT_SECONDS_DEFAULT,
        keep_log: bool = False,
        accept_changed_replay: bool = False,
    ) -> None:
        check_options(app, data_dir, n_slots, snapshot_interval)
        self.app = app
        self.data_dir = data_dir
        self.n_slots = n_slots
        if limits is not None and not isinstance(limits, Limits):
            raise ConfigurationError("limits is a styx.Limits, as in styx.Limits(in_flight_max=1_000)")
        self.limits = Limits() if limits is None else limits
        self.snapshot_interval = snapshot_interval
        self.keep_log = keep_log
        self.accept_changed_replay = accept_changed_replay
        self.counters = EngineCounters()
        self.reports = FunctionReports(self._later)
        self.ahead_us = 0  # of the wall clock
        self.watch = Watch()  # who looks on may give another one before the start
        self._mode = Mode.CREATED
        self._unavailable: str | None = "the engine has not been started: open its client first, as `async with` does"

    def _later(self, seconds: float, callback: Callable[[], None]) -> None:
        self._loop.call_later(seconds, callback)

    # State of the engine -----------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether it has recovered and serves."""
        return self._mode is Mode.SERVING

    @property
    def unavailable_reason(self) -> str | None:
        """Why it does not serve; None if it does."""
        return self._unavailable

    @property
    def broken_reason(self) -> str | None:
        """Why only another engine on its data goes on, once it has failed or was closed; None before that."""
        return self._unavailable if self._mode is Mode.ENDED else None

    @property
    def in_flight(self) -> int:
        """Requests taken and not answered."""
        return 0 if self._mode is Mode.CREATED else len(self._intake.taken.by_id)

    @property
    def held(self) -> int:
        """Requests of `submit` that wait for a place."""
        return 0 if self._mode is Mode.CREATED else len(self._intake.held.by_id)

    @property
    def poison(self) -> list[ReportPoison]:
        """The last records that could not be decoded and were skipped."""
        return list(self.counters.recent_poison)

    @property
    def last_snapshot_epoch(self) -> int | None:
        """The epoch of the newest complete snapshot."""
        manifests = self.coordinator.ledger.manifests
        return manifests[0].epoch if manifests else None

    def metrics(self) -> str:
        """All metrics in Prometheus' text format."""
        return NOTHING_YET if self._mode is Mode.CREATED else render(self)

    # Start -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Recovers and returns when requests are served.

        Raises `DataDirectoryInUse`, `OSError`, `ConfigurationError` also when the app would lose entities that are
        there, or `EngineFailed` when the data cannot be served without losing something acknowledged.
        """
        if self._mode is not Mode.CREATED:
            raise ConfigurationError("an engine is started once: make another one")
        began_s = time.monotonic()
        self._loop = asyncio.get_running_loop()
        self._storage = Storage.open(self.data_dir, Claim(self.app.name, self.n_slots))
        self.log = self._storage.log
        self._assemble()
        self._mode, self._unavailable = Mode.STARTING, "the engine is starting; try again soon"
        self._started: asyncio.Future[None] = self._loop.create_future()
        reading = "reading the metadata"
        self._background.submit(reading, self._read_metadata, self._boot, lambda error: self._fail(reading, error))
        try:
            await self._started
        except asyncio.CancelledError:
            self.crash()
            raise
        self.counters.recovery_s = time.monotonic() - began_s

    def _assemble(self) -> None:
        loop, storage, counters = self._loop, self._storage, self.counters
        self.app_change = AppChange(
            self.app, self.limits, self.n_slots, storage.kept, accept=self.accept_changed_replay
        )
        made_of = CoordinatorCore(self.n_slots, 1, self.snapshot_interval)
        self.coordinator = made_of.made()
        self.worker = Worker(WORKER_ID, self.app, self.n_slots, self.limits, self.reports.notes, self.watch)
        log = self._log = EngineLog(storage.log, self.ahead_us)
        data_dir = None if self.data_dir is None else Path(self.data_dir)
        self._drive = Drive(log, self.worker, data_dir, self._after_pass, self._fail)
        passes = self._passes = self._drive.passes
        storage.log.on_failure(lambda error: self._drive.on_loop(self._fail, "the log", error))
        self._background = Background(self._fail, self._drive.on_loop, threads_max=1)
        self._intake = RequestIntake(log, self._drive, self.limits.in_flight_max)
        router = EngineRouter(self.app, self.n_slots, self.limits, lambda: self.worker.executor.running)
        self.maker = RequestMaker(router, self.limits.request_bytes_max)
        self._external_log = ExternalLog(log, self.n_slots)
        submit, in_memory = self._background.submit, storage.kept is None
        events = self.events = EventStream(log, self.worker, submit, in_memory=in_memory, keep=self.keep_log)
        self._externals = ExternalFunctions(loop, self.limits, self._fail, self.reports.external)
        self._alarm = Alarm(log.now_us)
        objects = Objects(storage.store, submit)
        self.replay = ReplayWatch(storage.log, self.app_change, self.reports, counters)
        self._start = Start(
            self.worker, storage, self._background, self.app_change, self._external_log, events, self._fail
        )
        worker = WorkerHost(
            self.worker,
            WorkerPorts(
                OwnCoordinator(passes, counters),
                EngineJournal(self.worker, log, self._external_log, events, self._intake, counters),
                objects,
                self._start,
                self.replay,
                self._externals,
                self._alarm,
            ),
            passes.to_worker,
        )
        coordinator = CoordinatorHost(
            self.coordinator,
            OneMember(self.worker, passes, self.app_change, log, counters),
            OwnLog(log, self._external_log, events, self.keep_log),
            objects,
            NoOperator(counters, self._fail),
            passes.to_coordinator,
        )
        self.reads = EngineReads(self.worker, self.reports, log.now_us, passes)
        self.changes = EngineChanges(self.worker, passes)
        passes.start(worker.step, coordinator.step, made_of)
        self._snapshot_timer: asyncio.TimerHandle | None = None
        self._awaited: list[tuple[Callable[[], bool], asyncio.Future[bool]]] = []

    def _read_metadata(self) -> Started:
        started, damaged, generations = read_beginning(self._storage.store, self.log)
        for name in damaged:
            message = f"the manifest {name} in the store is damaged: its checksum does not match"
            self.counters.load_failures.append(message)
            _log.warning("%s; trying the one before it", message)
        self._external_log.read()
        requests = any(self.log.bounds(Stream.REQUESTS, slot) != (0, 0) for slot in range(self.n_slots))
        return self.app_change.begin(started, requests, bool(generations.markers))

    def _boot(self, started: Started) -> None:
        self._passes.to_coordinator(Tick(self._loop.time()))
        self._passes.to_coordinator(WorkerJoined(WORKER_ID))
        self._passes.to_coordinator(started)

    # Requests ----------------------------------------------------------------------------------------------

    def submit_request(self, request: Placed) -> Awaitable[ReplyRecord]:
        """As the gateway's `Engine` asks."""
        future: asyncio.Future[ReplyRecord] = self._loop.create_future()
        self.send_request(request, float("inf"), future)
        return future

    def send_request(self, request: Placed, seconds: float, receiver: Receiver) -> None:
        """As the gateway's `Engine` asks; refuses rather than holds back."""
        self._check_serving()
        self._intake.take_or_refuse(request, seconds, receiver)

    def submit(self, request: Placed, timeout: float) -> asyncio.Future[Reply]:
        """Takes a request that `maker` has made, now or when there is room for it, in the order they come.

        The future gives the `Reply`, or raises `TimeoutError`, `NotSent` or `OutcomeUnknown`. Raises `NotSent`
        at once if the engine does not serve.
        """
        self._check_serving()
        return self._intake.take_or_hold(request, timeout)

    def read(self, request: Placed, freshness: Freshness) -> asyncio.Future[ReplyRecord]:
        """As the gateway's `Engine` asks: `request` is of `maker`, and does not enter the log."""
        self._check_serving()
        return self.reads.submit(request, freshness)

    def read_reply(self, request: Placed, freshness: Freshness, timeout: float) -> asyncio.Future[Reply]:
        """The same, as clients get it; the future raises `TimeoutError` after `timeout` seconds."""
        self._check_serving()
        return self.reads.submit(request, freshness, timeout, raw=False)

    def _check_serving(self) -> None:
        if self._mode is not Mode.SERVING:
            raise NotSent(self._unavailable or "the engine does not serve")

    # After each pass ---------------------------------------------------------------------------------------

    def _after_pass(self) -> bool:
        if self._mode is Mode.STARTING:
            self._recover_further()
            return self._log.pending
        if self._intake.held.by_id:
            self._intake.admit_held()
        if self._snapshot_timer is None and self.coordinator.unstored:
            # Only while there is something new: an idle engine sleeps, and its coordinator hears of no time.
            self._snapshot_timer = self._loop.call_later(self.snapshot_interval, self._tick)
        for condition, future in self._awaited:
            if not future.done() and condition():
                future.set_result(True)
        return self._log.pending

    def _recover_further(self) -> None:
        if self.coordinator.phase is not Phase.RUNNING or self.worker.reached is not Step.IDLE:
            return
        feed = self._start.feed
        while not feed.exhausted:
            arrivals = feed.take()
            if arrivals:
                for event in arrivals:
                    self._passes.to_worker(event, sum([len(payload) for _, _, payload in event.arrivals]))
                return
        if self.worker.replaying:
            raise EngineFailed("recorded epochs name requests that the log does not hold: restore the data directory")
        if self.counters.replayed is None:
            self.counters.replayed = self.coordinator.replayed
            self.counters.recovered_from = self.last_snapshot_epoch
        if self._app_changes():
            return
        self._mode = Mode.SERVING
        self._unavailable = None
        self._started.set_result(None)
        forget = self.app_change.forget_older
        self._background.submit("deleting what is kept of older versions of the app", forget, _done, _done)

    def _app_changes(self) -> bool:
        """Takes the next step of a change of the app; whether one is under way."""
        change = self.app_change
        if change.stage is Stage.REPLAYING:
            change.stage = Stage.CHECKING
            what, epoch = "checking the state", self.worker.epoch
            tables = {slot.index: slot.state.at(epoch) for slot in self.worker.slots.values()}
            failed = lambda error: self._fail(what, error)  # noqa: E731 - it fits a line
            self._background.submit(what, lambda: change.check(tables), self._change_app, failed)
        elif change.stage is Stage.SWITCHING and self.coordinator.app_version == change.version:
            change.stage = Stage.DONE
        elif change.stage is Stage.SWITCHING and self.counters.snapshots_failed:
            raise EngineFailed("the snapshot before the new version of the app could not be stored: start again")
        return change.stage in (Stage.CHECKING, Stage.SWITCHING)

    def _change_app(self, _: None) -> None:
        self.app_change.stage = Stage.SWITCHING
        self._passes.to_coordinator(Tick(self._loop.time()))
        self._passes.to_coordinator(DeployWanted(self.app_change.version, at_once=True))

    # Snapshots ---------------------------------------------------------------------------------------------

    def _stored(self, epoch: int) -> bool:
        """Whether a snapshot is complete that has all up to `epoch`, and none is under way."""
        return self.coordinator.ledger.under_way is None and self.coordinator.clock.epoch >= epoch

    def _tick(self) -> None:
        self._snapshot_timer = None
        self._passes.to_coordinator(Tick(self._loop.time()))

    async def snapshot(self, timeout: float = CLOSE_SECONDS_MAX) -> bool:  # noqa: ASYNC109 - gives up, does not cancel
        """Takes a snapshot now, if anything is new; whether all that was there is stored within `timeout` seconds."""
        failed, epoch = self.counters.snapshots_failed, self.coordinator.epoch
        if self.coordinator.unstored:
            self._passes.to_coordinator(Tick(self._loop.time()))
            self._passes.to_coordinator(SnapshotWanted())
        await self._until(lambda: self._stored(epoch) or self.counters.snapshots_failed > failed, timeout)
        return self._stored(epoch)

    async def settled(self, timeout: float) -> bool:  # noqa: ASYNC109 - gives up, does not cancel
        """Waits until every request in the log is answered, and every call that is due is made; whether that was so
        within `timeout` seconds.
        """
        worker = self.worker
        return await self._until(
            lambda: (
                not (self.in_flight or self.held or worker.backlog or worker.unfinished or worker.deliveries.has_due())
            ),
            timeout,
        )

    @property
    def next_due_us(self) -> int | None:
        """When the next call that was given for a time is due, in microseconds since 1970; None if there is none."""
        return self.worker.deliveries.next_us()

    def now_us(self) -> int:
        """What its clock shows, in microseconds since 1970."""
        return self._log.now_us()

    async def set_forward(self, by_us: int) -> None:
        """Sets its clock forward: what is due by then is due when this returns."""
        self.ahead_us += by_us
        self._log.ahead_us = self.ahead_us
        told_us = self.now_us()
        self._passes.to_worker(ClockTold(told_us))
        await self._until(lambda: self.worker.deliveries.now_us >= told_us, CLOSE_SECONDS_MAX)

    async def flushed(self, timeout: float = CLOSE_SECONDS_MAX) -> bool:  # noqa: ASYNC109 - gives up, does not cancel
        """Waits until everything in the log so far is durable, replies included: they are given before that."""
        lsn = self.log.lsn
        return await self._until(lambda: self.log.durable_lsn >= lsn, timeout)

    # End ---------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Ends in order: takes no new requests, finishes those in flight, takes a snapshot, lets go of the directory.

        Waits for a bounded time; what is not finished by then goes on at the next start. Doing it twice is fine. Raises
        `EngineFailed` if the log could not be written to its end.
        """
        if self._mode is not Mode.SERVING:
            return
        self._mode = Mode.CLOSING
        self._unavailable = "the engine is closing"
        try:
            if not await self._until(lambda: not self.in_flight and not self.held, CLOSE_SECONDS_MAX):
                _log.warning("%d requests are not finished; they go on at the next start", self.in_flight)
            if not self._passes.stopped and not await self.snapshot():
                _log.warning("no last snapshot could be taken; the next start takes longer")
        except asyncio.CancelledError:
            self.crash()
            raise
        if self._stop("the engine is closed"):
            try:
                letting_go = self._loop.run_in_executor(None, self._let_go)
            except RuntimeError:
                # The interpreter is ending and starts no thread any more; nobody else waits for this loop then.
                self._let_go()
            else:
                await letting_go

    def _let_go(self) -> None:
        self._background.finish()
        self._storage.close()

    def crash(self) -> None:
        """Ends as a power cut would: nothing is flushed, nothing is closed in order, nobody gets a reply.

        Reopening the directory at once, in the same process too, is fine.
        """
        if self._mode is not Mode.CREATED and self._stop("the engine crashed"):
            self._background.crash()
            self._storage.crash()

    def _fail(self, what: str, error: BaseException) -> None:
        failure: StyxError
        if isinstance(error, EngineFailed | ConfigurationError):
            failure = error
        else:
            failure = EngineFailed(f"{what} failed: {type(error).__name__}: {error}{notes_of(error)}")
            failure.__cause__ = error
        starting = self._mode is Mode.STARTING
        if not self._stop(f"the engine failed: {failure}"):
            return
        if starting:
            self._started.set_exception(failure)
        if not (starting and isinstance(failure, ConfigurationError)):  # that is the caller's, who is told
            _log.error("the engine failed: %s", failure, exc_info=error)
        self._background.crash()
        self._storage.crash()

    async def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Waits until a pass leaves `condition` true or the engine ends; whether it was true then."""
        if not condition() and not self._passes.stopped:
            awaited = (condition, self._loop.create_future())
            self._awaited.append(awaited)
            try:
                if await asyncio.wait_for(awaited[1], seconds):
                    return True  # by now a call may be due that was not then
            except TimeoutError:
                pass
            finally:
                self._awaited.remove(awaited)
        return condition()

    def _stop(self, reason: str) -> bool:
        """Nothing happens from here on; False if that is so already."""
        if self._mode is Mode.ENDED:
            return False
        self._mode = Mode.ENDED
        self._unavailable = reason
        self._passes.stop()
        self.app_change.end()
        self._externals.stop()
        self._alarm.stop()
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
        self._intake.end(reason)
        self.events.end(reason)
        self.reads.end(lambda: NotSent(reason))
        self.changes.end(reason)
        for _, future in self._awaited:
            if not future.done():
                future.set_result(False)
        try:
            self.worker.executor.end()
        except Exception:  # noqa: BLE001 - logged; the engine is ending, maybe because of this very fault
            _log.exception("functions that were waiting could not be ended")
        self._passes.watchdog.stop()
        return True


def _done(_: object) -> None:
    """What was to be deleted is gone, or costs space only."""

"""Passes: once a turn of the event loop, events go into a process's cores until none is left, and effects out. `settle`
is how a process that has no passes gives its events.

All work of the protocol happens in a pass. Each pass runs one slice of functions at most, so the event loop gets its
turns. A pass never blocks. Its exceptions go to the host's surroundings, with a note of the event that was taken; the
last events go to a file.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import get_ident
from typing import Final, Protocol

from styx.coordinator.events import Event as CoordinatorEvent
from styx.errors import StyxError
from styx.host.event_dump import CoordinatorCore, WorkerCore, event_text, leave_dump
from styx.host.event_log import BYTES_MAX, CARRIERS, EVENTS_MAX, NOTED, EventLog, Item, Step
from styx.watchdog.watchdog import Watchdog
from styx.watchdog.watched import Watched
from styx.worker.events import Event, LogLags, Proceed
from styx.worker.pressure import LOG_BYTES_MAX
from styx.worker.worker import Worker

EVENT_TEXT_CHARS_MAX: Final = 2000
"""The length of an event's text in the report of a failed pass."""


class Surroundings(Protocol):
    """The process around the cores."""

    def gather(self) -> None:
        """A pass begins: gives it the events that were gathered."""

    def flush(self) -> int:
        """Hands new records to the log, and gives events for those that became durable. Returns the bytes that wait."""

    def after_pass(self) -> bool:
        """A pass has taken all events; returns whether another pass must follow at once."""

    def failed(self, what: str, error: BaseException) -> None:
        """A pass has raised this; it has taken its last event."""


class Passes:
    """Of one worker's core, and of the coordinator's where that is in the same process.

    `turn` is odd within a pass, and another number in each. `watchdog` watches the passes' thread, which made this;
    `place` and `busy` are as `Watched` and `Watchdog` take them. The last events go to the file `dump` if the engine
    itself fails.
    """

    def __init__(
        self,
        worker: Worker,
        surroundings: Surroundings,
        place: str = "",
        busy: Callable[[str, float], None] | None = None,
        dump: Path | None = None,
    ) -> None:
        self._dump = dump
        self._log = EventLog()
        self.stopped = False
        self.turn = 0
        self._worker = worker
        self._surroundings = surroundings
        self._loop = asyncio.get_running_loop()
        self._steps: tuple[Step, Step | None] | None = None
        self._coordinator: CoordinatorCore | None = None
        self._events: deque[Item] = deque()
        self._scheduled = False
        self._passing = False
        self._lags = False
        self._beside: tuple[Callable[[], bool], ...] = ()
        self.watchdog = Watchdog(Watched(worker, self, get_ident(), place), busy)

    def start(self, worker: Step, coordinator: Step | None = None, core: CoordinatorCore | None = None) -> None:
        """Events go there from now on, and the watchdog watches. `core` is what the coordinator was made of."""
        self._steps, self._coordinator = (worker, coordinator), core
        self.watchdog.start(self._loop.call_soon_threadsafe)

    def to_worker(self, event: Event, n_bytes: int = 0) -> None:
        """The event happens to the worker, in this pass or the next one. `n_bytes`: of requests or a frame in it."""
        assert self._steps is not None
        self._events.append((self._steps[0], event, n_bytes))
        self.wake()

    def to_coordinator(self, event: CoordinatorEvent) -> None:
        """The event happens to the coordinator, in this pass or the next one."""
        assert self._steps is not None
        assert self._steps[1] is not None
        self._events.append((self._steps[1], event, 0))
        self.wake()

    def wake(self) -> None:
        """There is something to do: another pass comes soon."""
        if not (self._scheduled or self._passing or self.stopped):
            self._scheduled = True
            self._loop.call_soon(self._pass)

    def beside(self, run: Callable[[], bool]) -> None:
        """From now on each pass calls `run` behind the steps of the protocol, such as a slice of the reads outside the
        log; it returns whether there is more to do.
        """
        if run not in self._beside:
            self._beside += (run,)
        self.wake()

    def stop(self) -> None:
        """No pass begins any more."""
        self.stopped = True
        self._events.clear()
        self._log.clear()

    def _pass(self) -> None:
        self._scheduled = False
        if self.stopped:
            return
        worker, surroundings = self._worker, self._surroundings
        self._passing = True
        self.turn += 1
        again = False
        try:
            surroundings.gather()
            settle(self._events, self._log)
            if worker.runnable:
                surroundings.flush()  # an epoch's record is on its way while the epoch runs
                self.to_worker(_PROCEED)
                settle(self._events, self._log)
            lags = surroundings.flush() > LOG_BYTES_MAX
            settle(self._events, self._log)
            if not self.stopped:
                # Behind the last step: what this pass has closed can be read now.
                for run in self._beside:
                    again = run() or again
                again = surroundings.after_pass() or again
                if lags != self._lags:
                    self._lags = lags
                    self.to_worker(LogLags(lags))
        except BaseException as error:
            self._passing = False
            self.turn += 1
            self.stopped = True
            try:
                if isinstance(error, Exception) and not isinstance(error, StyxError):
                    self._leave_dump(error)
            finally:
                surroundings.failed("the engine's pass", error)
            if not isinstance(error, Exception):
                raise
            return
        self._passing = False
        self.turn += 1
        if again or self._events or worker.runnable:
            self.wake()

    def _leave_dump(self, error: Exception) -> None:
        if self._dump is None or self._steps is None or not self._log.items:
            return
        worker, failed = self._worker, self._log.items[-1][0]
        core: WorkerCore | CoordinatorCore = WorkerCore(worker.id, worker.n_slots, worker.limits)
        if self._coordinator is not None and failed == self._steps[1]:
            core = self._coordinator
        else:
            failed = self._steps[0]
        leave_dump(self._dump, worker.app.name, core, self._log.of(failed), error)


def settle(events: deque[Item], log: EventLog) -> None:
    """Gives the events to their cores until none is left, those that come meanwhile as well. An exception has a note of
    the event that was taken, which is the last one in the log.
    """
    items = log.items
    while events:
        item = events.popleft()
        step, event, _ = item
        kind = type(event)
        if (type(event.message) if kind in CARRIERS else kind) in NOTED:
            item = log.noted(item)
        items.append(item)
        log.n_bytes += item[2]
        while len(items) > EVENTS_MAX or (log.n_bytes > BYTES_MAX and len(items) > 1):
            log.n_bytes -= items.popleft()[2]
            log.whole = False
        try:
            step(event)
        except BaseException as error:
            error.add_note(f"while taking {event_text(event, EVENT_TEXT_CHARS_MAX)}")
            raise


_PROCEED: Final = Proceed()

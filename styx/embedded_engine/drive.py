"""The engine's pass: once a turn of the event loop, events go into the cores until both are quiet.

One pass takes the requests that arrived, runs one slice of functions, hands new records to the log and reports those
that became durable. It never blocks, and any failure in it is reported: there is no task that could die unseen.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol

from styx.coordinator.events import Event as CoordinatorEvent
from styx.embedded_engine.durability import DurableWaiters
from styx.log.base import Log, Record
from styx.worker.events import Event as WorkerEvent
from styx.worker.events import Proceed, RequestsArrived
from styx.worker.worker import Worker


class Shell(Protocol):
    """One core and whatever carries out its effects."""

    def step(self, event: Any) -> object:
        """Gives the core an event and does what it wants done; what that causes comes as further events."""


class Drive:
    """`after_pass` is called when both cores are quiet; `failed` with what a pass could not survive. `turn` is
    odd within a pass, and another number in each.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        log: Log,
        worker: Worker,
        n_slots: int,
        after_pass: Callable[[], None],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self.durable = DurableWaiters()
        self.stopped = False
        self.turn = 0
        self._loop = loop
        self._log = log
        self._worker = worker
        self._after_pass = after_pass
        self._failed = failed
        self._shells: tuple[Shell, Shell] | None = None
        self._events: deque[tuple[Shell, Any]] = deque()
        self._arrivals: list[list[Record]] = [[] for _ in range(n_slots)]
        self._scheduled = False
        self._passing = False
        self._woken = False
        self._thread = get_ident()
        self._proceed = Proceed()
        log.on_durable(self._became_durable)

    def connect(self, coordinator: Shell, worker: Shell) -> None:
        """Before the first event: where events go."""
        self._shells = (coordinator, worker)

    def to_coordinator(self, event: CoordinatorEvent) -> None:
        """The event happens to the coordinator, soon."""
        assert self._shells is not None
        self._events.append((self._shells[0], event))
        self.wake()

    def to_worker(self, event: WorkerEvent) -> None:
        """The event happens to the worker, soon."""
        assert self._shells is not None
        self._events.append((self._shells[1], event))
        self.wake()

    def request(self, slot: int, arrival: Record) -> None:
        """A record was appended to the slot's requests."""
        self._arrivals[slot].append(arrival)
        if not self._scheduled:
            self.wake()

    def wake(self) -> None:
        """There is something to do."""
        if not (self._scheduled or self._passing or self.stopped):
            self._scheduled = True
            self._loop.call_soon(self._pass)

    def on_loop(self, callback: Callable[..., None], *args: Any) -> None:
        """Runs the callback on the engine's thread; from any thread, also when the loop is gone."""
        try:
            self._loop.call_soon_threadsafe(self._guarded, callback, args)
        except RuntimeError:
            # The application closed its loop without closing the engine: nobody is left to tell.
            self.stopped = True

    def _guarded(self, callback: Callable[..., None], args: tuple[Any, ...]) -> None:
        if self.stopped:
            return
        try:
            callback(*args)
        except Exception as error:  # noqa: BLE001 - an answer that is lost would leave the engine waiting for good
            self._failed("taking the end of background work", error)

    def stop(self) -> None:
        """No pass begins any more."""
        self.stopped = True
        self._events.clear()

    def _became_durable(self, _: int) -> None:
        # A log in memory reports inside of `flush`, and the pass looks after that anyway.
        if not self._woken and get_ident() != self._thread:
            self._woken = True
            self.on_loop(self._wake_durable)

    def _wake_durable(self) -> None:
        self._woken = False
        self.wake()

    def _pass(self) -> None:
        self._scheduled = False
        if self.stopped:
            return
        self._passing = True
        self.turn += 1
        try:
            self._deliver()
            if self._worker.runnable or self._worker.pressure.congested:
                self.to_worker(self._proceed)
            self._settle()
            log = self._log
            if not self.stopped:
                log.flush()
            flushed = log.lsn
            self.durable.release(log.durable_lsn)
            self._settle()
            if not self.stopped:
                self._after_pass()
        except BaseException as error:
            self._passing = False
            self.turn += 1
            self._failed("the engine's pass", error)
            if not isinstance(error, Exception):
                raise
            return
        self._passing = False
        self.turn += 1
        if self._worker.runnable or self._events or log.lsn != flushed or self.durable.due(log.durable_lsn):
            self.wake()

    def _deliver(self) -> None:
        for slot, arrivals in enumerate(self._arrivals):
            if arrivals:
                self._arrivals[slot] = []
                self.to_worker(RequestsArrived(slot, arrivals))

    def _settle(self) -> None:
        events = self._events
        while events:
            shell, event = events.popleft()
            try:
                shell.step(event)
            except BaseException as error:
                error.add_note(f"while taking {_shown(event)}")
                raise


def _shown(event: Any) -> str:
    text = repr(event)
    return text if len(text) <= 2000 else f"{text[:2000]}…"

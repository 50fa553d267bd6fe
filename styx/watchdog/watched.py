"""The subject of a watchdog: one worker's core, or a check of stored state; its thread, and whether that thread is
within a pass.

Read from another thread, so each access reads a single field.
"""

from __future__ import annotations

from typing import Protocol

from styx.model.limits import Limits
from styx.protocol.reads import READ_NUMBERS
from styx.sequencer.sequencer import slot_of
from styx.worker.events import Step
from styx.worker.invocation import Invocation, Running
from styx.worker.worker import Worker


class Turns(Protocol):
    """The loop that gives the core its events; `turn` is odd within a pass, and another number in each."""

    turn: int


class Watched:
    """`thread_id` as `threading.get_ident()` gives it; `place` are the options by which `styx set-aside` finds what the
    worker runs.
    """

    def __init__(self, worker: Worker, turns: Turns, thread_id: int, place: str = "") -> None:
        self._place = place
        self.worker = worker
        self.turns = turns
        self.thread_id = thread_id

    @property
    def running(self) -> Running:
        """The record of the function that runs."""
        return self.worker.executor.running

    @property
    def limits(self) -> Limits:
        """The core's present limits: recorded epochs run within the limits that they were recorded with."""
        return self.worker.limits

    @property
    def patience(self) -> int:
        """How many times the limit a function may run."""
        return self.worker.patience

    def recovery(self) -> str | None:
        """The worker's work before it can serve; None once it serves, or while it has no slots."""
        worker = self.worker
        if worker.generation < 0:
            return None  # it has been given no slots yet: it stands by, or cannot run the app, which is told elsewhere
        if worker.reached in (Step.LOADING, Step.LOADED):
            return "the newest snapshot and the log behind it are being read"
        if worker.epoch < worker.recorded_until:
            return f"recorded epochs are run again, {worker.epoch + 1} to {worker.recorded_until}"
        return None

    def way_out(self, invocation: Invocation) -> str:
        """The advice about a function that cannot be ended. Requests of other workers are not known here."""
        tid = invocation._env.tid
        if tid >= READ_NUMBERS:
            return ". It is of a read outside the log"
        root = self.worker.executor.roots.get(tid)
        if root is None:
            slot = slot_of(tid, self.worker.n_slots)
            return f". It is of transaction {tid}, a request of slot {slot}, which another worker owns"
        place = f"{root.slot}:{root.offset}"
        return (
            f". It is of the request {place}: if it never comes back, have that refused with "
            f"`styx set-aside {place}{self._place}`"
        )

    def replaying(self) -> str:
        """The words for the present epoch if it was recorded; empty otherwise."""
        worker = self.worker
        if worker.patience == 1 or worker.reached not in (Step.EXECUTING, Step.LOCKING, Step.LOCAL):
            return ""
        return f", in the replay of epoch {worker.epoch}"


class WatchedCheck:
    """A check of stored state on a thread of its own, while nothing else runs."""

    patience = 1
    turn = 0

    def __init__(self, running: Running, limits: Limits, thread_id: int) -> None:
        self.running = running
        self.limits = limits
        self.thread_id = thread_id

    @property
    def turns(self) -> Turns:
        """A check holds up no event loop."""
        return self

    def recovery(self) -> str | None:
        """None: a check reports only the app's code, not itself."""
        return None

    def way_out(self, invocation: Invocation) -> str:
        """Empty: a check belongs to no request."""
        return ""

    def replaying(self) -> str:
        """The words for a check, which belongs to no epoch."""
        return ", where stored state is read"

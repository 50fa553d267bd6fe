"""The worker's protocol, unchanged, with a watch that learns when it reaches which step. The core reads no clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from styx.app import App
from styx.cluster.worker.epoch_watch import EpochWatch
from styx.limits import Limits
from styx.worker.events import CheckFurther, CoordinatorSaid, Effect, Event, Proceed
from styx.worker.notes import Notes
from styx.worker.step import Step
from styx.worker.worker import Worker


class TimedWorker(Worker):
    """As `Worker`; tells `watch`."""

    def __init__(
        self, worker: int, app: App, n_slots: int, limits: Limits, watch: EpochWatch, notes: Notes | None = None
    ) -> None:
        self._watch = watch
        self.checked: Callable[[float, float], None] = lambda *_: None
        """Gets how long a slice of a check of the state took, and how long its processor, in seconds."""
        super().__init__(worker, app, n_slots, limits, notes)

    def _reach(self, step: Step) -> None:
        super()._reach(step)
        watch = self._watch
        if step is Step.EXECUTING:
            watch.begins(self.executor, self.transactions_ended)
        elif step is Step.VALIDATING:
            watch.validates()
        elif step is Step.LOCKING:
            watch.locks(len(self._locked & self.executor.roots.keys()))
        elif step is Step.LOADING:
            watch.abandons()
        else:
            watch.closes(self.executor, self.transactions_ended)

    def step(self, event: Event) -> list[Effect]:
        """As `Worker.step`."""
        watch = self._watch
        if isinstance(event, CheckFurther):
            started_s, processor_s = time.perf_counter(), time.thread_time()
            effects = super().step(event)
            self.checked(time.perf_counter() - started_s, time.thread_time() - processor_s)
            return effects
        if watch.sampling:
            watch.breakdown.go_on(watch.clock())
            if isinstance(event, Proceed) and self.reached is Step.EXECUTING:
                started_s = watch.clock()
                effects = super().step(event)
                watch.breakdown.running_s += watch.clock() - started_s
                return effects
        if isinstance(event, CoordinatorSaid) and event.message.generation == self.generation:
            watch.told(event.message)
        return super().step(event)

    def _begin_epoch(self) -> None:
        super()._begin_epoch()
        if self.reached is Step.EXECUTING:
            self._watch.sequenced(self.executor)

    def _run_locks(self) -> None:
        watch = self._watch
        started_s = watch.clock() if watch.sampling else 0.0
        super()._run_locks()
        if watch.sampling:
            watch.breakdown.running_s += watch.clock() - started_s

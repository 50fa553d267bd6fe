"""Timed steps of the worker's protocol, for the watch and for the pace of state checks.

The protocol itself reads no clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from styx.cluster.worker.epoch_watch import EpochWatch
from styx.worker.events import CheckFurther, CoordinatorSaid, Effect, Event, Proceed, Step
from styx.worker.worker import Worker


class TimedSteps:
    """Of `core`, whose epochs `watch` looks at; `checked` gets how long a slice of a check of the state took, and how
    long its processor, in seconds.
    """

    def __init__(self, core: Worker, watch: EpochWatch, checked: Callable[[float, float], None]) -> None:
        self._core = core
        self._watch = watch
        self._checked = checked

    def step(self, event: Event) -> list[Effect]:
        """As `Worker.step`."""
        core, watch = self._core, self._watch
        if isinstance(event, CheckFurther):
            started_s, processor_s = time.perf_counter(), time.thread_time()
            effects = core.step(event)
            self._checked(time.perf_counter() - started_s, time.thread_time() - processor_s)
            return effects
        if watch.sampling:
            watch.breakdown.go_on(watch.clock())
            if isinstance(event, Proceed) and core.reached is Step.EXECUTING:
                started_s = watch.clock()
                effects = core.step(event)
                watch.breakdown.running_s += watch.clock() - started_s
                return effects
        if isinstance(event, CoordinatorSaid) and event.message.generation == core.generation:
            watch.told(event.message)
        return core.step(event)

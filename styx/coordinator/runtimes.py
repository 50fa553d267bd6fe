"""One cluster, one runtime: which workers may register, by the interpreter and the form of the engine that they run on.

Python's own error texts differ between runtimes, and an error's text is part of the reply. So workers of several
runtimes, or a replay on another runtime than the first run's, could contradict given replies. The coordinator accepts
another runtime only if it began with nothing to replay, and then from its first worker. No worker is admitted before
the store has recorded the runtime.
"""

from __future__ import annotations

from styx.coordinator.control_events import ControlEffect, RuntimeStored, StoreRuntime, TurnAway, WorkerArrived


class Runtimes:
    """Of one life of a coordinator. `recorded` is the runtime of epochs that are to be replayed, empty without any."""

    def __init__(self, recorded: str) -> None:
        self.present = recorded
        self._stored = bool(recorded)
        self._waiting: dict[int, WorkerArrived] = {}

    def arrived(self, worker: WorkerArrived) -> tuple[list[WorkerArrived], list[ControlEffect]]:
        """(who may register now, what is to be done)."""
        if self.present and worker.runtime != self.present:
            return [], [TurnAway(worker.worker, self._reason(worker.runtime))]
        if self._stored:
            return [worker], []
        self._waiting[worker.worker] = worker
        if self.present:
            return [], []
        self.present = worker.runtime
        return [], [StoreRuntime(worker.runtime)]

    def stored(self, event: RuntimeStored) -> tuple[list[WorkerArrived], list[ControlEffect]]:
        """As `arrived`. If the store does not take it, workers try again, and so does this."""
        waiting, self._waiting = list(self._waiting.values()), {}
        if not event.problem:
            self._stored = True
            return waiting, []
        self.present = ""
        return [], [TurnAway(each.worker, event.problem) for each in waiting]

    def lost(self, worker: int) -> None:
        """One that waits may be gone before it is admitted."""
        self._waiting.pop(worker, None)

    def _reason(self, runtime: str) -> str:
        return (
            f"this cluster runs on {self.present}, and the worker on {runtime or 'an unknown runtime'}: two word some "
            "errors differently. Use the same Python and the same form everywhere (STYX_PLAIN, scripts/compile). To "
            "change the form, stop the coordinator (SIGTERM) until it says that the snapshot is stored, replace all "
            "workers, and start it again; the minor version of Python is the app's package's, and stays"
        )

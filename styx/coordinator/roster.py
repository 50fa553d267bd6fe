"""The roster: registered workers and the facts about each, and the runtime that a worker needs to register.

One cluster has one runtime, that is an interpreter and a form of the engine. Python's own error texts differ between
runtimes, and an error's text is part of the reply. So workers of several runtimes, or a replay on another runtime than
the first run's, could contradict given replies. The coordinator accepts another runtime only if it began with nothing
to replay, and then from its first worker. No worker is admitted before the store has recorded the runtime.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from styx.coordinator.control_events import (
    ControlEffect,
    RuntimeStored,
    StoreRuntime,
    TurnAway,
    WorkerArrived,
    WorkerBeat,
)


@dataclass(slots=True)
class Registration:
    """A worker that is registered. `joined`: the protocol knows it.

    `taken` are the versions of the app that it can run, `refused` says of others why it cannot. `leaving`: it is to
    have no slots any more, and has none once it is `released`. `spare` is what it was told last of standing by.
    `busy_at_s`: when a function was last said to hold it up.
    """

    number: int
    name: str
    incarnation: str = ""
    address: str = ""
    joined: bool = False
    leaving: bool = False
    released: bool = False
    spare: bool | None = None
    beat: WorkerBeat | None = None
    busy_at_s: float = -math.inf
    taken: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)


class Roster:
    """The registered workers, by number."""

    def __init__(self) -> None:
        self.workers: dict[int, Registration] = {}

    def members(self, numbers: Iterable[int]) -> list[Registration]:
        """Those of these that are registered."""
        return [self.workers[number] for number in numbers if number in self.workers]

    def named(self, name: str) -> list[Registration]:
        """Those that an operator calls so."""
        return [each for each in self.workers.values() if each.name == name]


class Runtimes:
    """The runtime that one life of a coordinator accepts. `recorded` is that of epochs to replay, empty without any."""

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

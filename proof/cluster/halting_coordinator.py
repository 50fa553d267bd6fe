"""The command line, with a coordinator that tells of the moments of a planned change, and stands still at a given one.

So that a test can strike exactly there. It stops itself (SIGSTOP) between a decision and what is done about it, at the
moment that the file `halt-at` in its working directory names, and goes on when it is told to (SIGCONT). It decides
nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from styx.cli import main
from styx.cluster.coordinator import process
from styx.cluster.coordinator.metrics import CoordinatorCounters, Moment
from styx.coordinator.control_events import Effect, Event, ScaleAsked
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    FenceMembers,
    NoteAppended,
    StoreManifest,
    TellWorker,
)
from styx.coordinator.generation import Phase
from styx.protocol.messages import Commit, LockDecision, Recover, Resume, SnapshotEnded

MODULE: Final = "proof.cluster.halting_coordinator"
HALT_FILE: Final = "halt-at"
DURING: Final = ("asked", "snapshot", "between", "held", "stored", "fencing", "loading")
"""Of a change, in their order: it was asked for; its ordinary snapshot was begun; that is complete; the held one was
begun; all workers have stored theirs; the new generation is being fenced off; its workers load their slots.
"""
RESUMED: Final = "resumed"
"""The new generation goes on: the change is done."""
SERVED: Final = "served"
"""Its first epoch has ended."""
_TOLD: Final = "a change:"


class Told(NamedTuple):
    """One moment: which, of which generation with how many members, by the system's monotonic clock in seconds.

    `planned` if a held snapshot led to the generation; `halted` if the coordinator stands still there.
    """

    moment: str
    generation: int
    members: int
    at_s: float
    planned: bool
    halted: bool


class TellingCounters(CoordinatorCounters):
    """Looks at the core as counters do, and says what it sees."""

    _last: str | None = None

    def stepped(self, before: Moment, core: Coordinator, event: Event, effects: Sequence[Effect]) -> None:
        """The core has taken an event."""
        super().stepped(before, core, event, effects)
        moment = _moment(core, event, effects)
        if moment is None and self._last == RESUMED and core.phase is Phase.RUNNING and core.epoch > before.epoch:
            moment = SERVED
        if moment is None or (moment == "stored" and self._last != "held"):
            return
        self._last = moment
        members, planned = len(core.membership.members), isinstance(event, NoteAppended)
        told = Told(moment, core.generation, members, time.monotonic(), planned, False)
        _tell(told)
        _halt_if_wanted(told)


def _moment(core: Coordinator, event: Event, effects: Sequence[Effect]) -> str | None:
    if isinstance(event, ScaleAsked):
        return "asked" if core.changing else None
    for effect in effects:
        moment = _of_effect(effect, core)
        if moment is not None:
            return moment
    return None


def _of_effect(effect: Effect, core: Coordinator) -> str | None:
    if isinstance(effect, FenceMembers):
        return "fencing"
    if isinstance(effect, StoreManifest):
        return "stored"
    message = effect.message if isinstance(effect, TellWorker) else None
    if isinstance(message, Recover):
        return "loading"
    if isinstance(message, Resume):
        return RESUMED
    if isinstance(message, SnapshotEnded):
        return "between" if core.changing and message.complete else None
    return _of_snapshot(message, core) if isinstance(message, Commit | LockDecision) else None


def _of_snapshot(decision: Commit | LockDecision, core: Coordinator) -> str | None:
    if not decision.snapshot or not core.changing:
        return None
    return "held" if decision.hold else "snapshot"


def _tell(told: Told) -> None:
    words = " ".join(f"{each:.6f}" if isinstance(each, float) else str(each) for each in told)
    os.write(sys.stderr.fileno(), f"{_TOLD} {words}\n".encode())


def _halt_if_wanted(told: Told) -> None:
    wanted = Path(HALT_FILE)
    if wanted.exists() and wanted.read_text() in (told.moment, f"{told.moment} {told.members}"):
        wanted.unlink()
        _tell(told._replace(halted=True))
        os.kill(os.getpid(), signal.SIGSTOP)


def halt_at(directory: Path, moment: str, members: int | None = None) -> None:
    """The coordinator that runs, or will run, in `directory` stands still at this moment, once; of a generation with
    so many members, if that is said.
    """
    made = directory / f"{HALT_FILE}.new"
    made.write_text(moment if members is None else f"{moment} {members}")
    made.rename(directory / HALT_FILE)


def told_in(logs: Iterable[Path]) -> list[Told]:
    """What coordinators with these logs have told, in order."""
    told = []
    for log in logs:
        for line in log.read_text("utf-8", "replace").splitlines():
            if line.startswith(_TOLD):
                moment, generation, members, at_s, planned, halted = line.removeprefix(_TOLD).split()
                of = (int(generation), int(members), float(at_s), planned == "True", halted == "True")
                told.append(Told(moment, *of))
    return told


if __name__ == "__main__":
    vars(process)[CoordinatorCounters.__name__] = TellingCounters
    sys.exit(main())

"""The command line, with a coordinator that prints the moments of a planned change, and stops at a given one.

So a test can strike exactly there. The coordinator stops itself (SIGSTOP) between a decision and its effects, at the
moment that the file `halt-at` in its working directory names, and continues after SIGCONT. The decisions are those of
the ordinary coordinator.
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
"""The moments of a change, in order: a command asked for it; its ordinary snapshot was begun; that snapshot is
complete; the held snapshot was begun; all workers have stored their parts; the old generation is being fenced; workers
load slots.
"""
RESUMED: Final = "resumed"
"""The new generation runs: the change is complete."""
SERVED: Final = "served"
"""The first epoch of the new generation has ended."""
_TOLD: Final = "a change:"


class Told(NamedTuple):
    """One moment: its name, the generation with its number of members, and the system's monotonic clock in seconds.

    `planned`: the generation began on a held snapshot. `halted`: the coordinator has stopped there.
    """

    moment: str
    generation: int
    members: int
    at_s: float
    planned: bool
    halted: bool


class TellingCounters(CoordinatorCounters):
    """Observes the core like counters, and prints the moments."""

    _last: str | None = None

    def stepped(self, before: Moment, core: Coordinator, event: Event, effects: Sequence[Effect]) -> None:
        """Takes the core's state before and after an event."""
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
    """Makes the present or next coordinator in `directory` stop once at this moment, if `members` is given only in a
    generation with that number of members.
    """
    made = directory / f"{HALT_FILE}.new"
    made.write_text(moment if members is None else f"{moment} {members}")
    made.rename(directory / HALT_FILE)


def told_in(logs: Iterable[Path]) -> list[Told]:
    """The moments in coordinators' logs, in order."""
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

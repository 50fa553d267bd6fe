"""A coordinator's counters, over all its lives: recoveries and their causes, epochs, snapshots, deployments.

They compare the protocol's core before and after each of its steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from styx.coordinator.control_events import Effect, Event
from styx.coordinator.coordinator import Coordinator, Phase
from styx.coordinator.events import (
    Expel,
    NoteAppended,
    Started,
    TellWorker,
    WorkerLost,
    WorkerSaid,
)
from styx.metrics.histogram import STORE_SECONDS, Histogram
from styx.protocol.manifest import Manifest
from styx.protocol.messages import Broken, SnapshotEnded

CAUSES: Final = (
    "start",
    "worker_lost",
    "worker_silent",
    "connection_broken",
    "log_lost",
    "planned",
)
"""Why the workers load their slots anew."""


class Moment(NamedTuple):
    """The core before a step."""

    phase: Phase
    generation: int
    epoch: int
    snapshots_completed: int
    storing: bool
    replayed: int


def moment(core: Coordinator) -> Moment:
    """The core as it is now."""
    storing = core.ledger.under_way is not None
    return Moment(core.phase, core.generation, core.epoch, core.snapshots_completed, storing, core.replayed)


class Counters:
    """`clock` gives seconds. `recovery_s` is how long the last recovery took, from its cause until epochs ran again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.recoveries = dict.fromkeys(CAUSES, 0)
        self.recovery_s = 0.0
        self.epochs = 0
        self.replayed = 0
        self.expelled = 0
        self.snapshots_completed = 0
        self.snapshots_failed = 0
        self.snapshot_bytes = 0
        self.snapshot_seconds = Histogram(STORE_SECONDS)
        self.deployed = 0
        self.refused = 0
        self._clock = clock
        self._cause = ""
        self._since_s = 0.0
        self._snapshot_since_s = 0.0
        self._failed = (-1, -1)

    def stepped(self, before: Moment, core: Coordinator, event: Event, effects: Sequence[Effect]) -> None:
        """The core has taken an event."""
        self.replayed += core.replayed - before.replayed
        self.expelled += sum(isinstance(effect, Expel) for effect in effects)
        self._count_recovery(before, core, event, effects)
        self._count_snapshot(before, core, effects)
        if before.phase is Phase.RUNNING and core.phase is Phase.RUNNING and core.epoch > before.epoch:
            self.epochs += 1

    def deployment_ended(self, done: bool) -> None:
        """A deployment that had begun took effect, or could not."""
        if done:
            self.deployed += 1
        else:
            self.refused += 1

    def _count_recovery(self, before: Moment, core: Coordinator, event: Event, effects: Sequence[Effect]) -> None:
        running = core.phase is Phase.RUNNING
        if not running and not self._cause:
            self._cause, self._since_s = _cause(event, effects), self._clock()
        elif running and self._cause:
            self.recoveries[self._cause] += 1
            self.recovery_s = self._clock() - self._since_s
            self._cause = ""

    def _count_snapshot(self, before: Moment, core: Coordinator, effects: Sequence[Effect]) -> None:
        if core.snapshots_completed > before.snapshots_completed:
            self.snapshots_completed += 1
            self.snapshot_seconds.observe(self._clock() - self._snapshot_since_s)
            self.snapshot_bytes += written_bytes(core.ledger.manifests[0])
        for effect in effects:
            if isinstance(effect, TellWorker) and isinstance(effect.message, SnapshotEnded):
                self._count_failure(effect.message)
        if core.ledger.under_way is not None and not before.storing:
            self._snapshot_since_s = self._clock()

    def _count_failure(self, ended: SnapshotEnded) -> None:
        """All members are told of it; it is one failure."""
        which = (ended.generation, ended.epoch)
        if not ended.complete and which != self._failed:
            self._failed = which
            self.snapshots_failed += 1


def _cause(event: Event, effects: Sequence[Effect]) -> str:
    if isinstance(event, Started):
        return "start"
    if isinstance(event, WorkerLost):
        return "worker_lost"
    if isinstance(event, WorkerSaid) and isinstance(event.message, Broken):
        return "log_lost" if event.message.peer < 0 else "connection_broken"
    if any(isinstance(effect, Expel) for effect in effects):
        return "worker_silent"
    return "planned" if isinstance(event, NoteAppended) else "start"


def written_bytes(manifest: Manifest) -> int:
    """What was stored for this snapshot itself."""
    return sum(slot.part.stored.size for slot in manifest.slots if slot.part.stored is not None)


def whole_bytes(manifest: Manifest) -> int:
    """What a load of this snapshot reads."""
    return sum(ref.size for slot in manifest.slots for ref in slot.objects)

"""A coordinator's metrics: counters over all its lives, and the exposition of all metrics when they are read.

The counters compare the protocol's core before and after each of its steps. Described in docs/metrics.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from prometheus_client.core import Metric

from styx.coordinator.control_events import Effect, Event
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    Expel,
    NoteAppended,
    Started,
    TellWorker,
    WorkerLost,
    WorkerSaid,
)
from styx.coordinator.generation import Phase
from styx.metrics import families
from styx.metrics.exposition import Exposition, counter, counters, gauge, gauges, histogram
from styx.metrics.histogram import STORE_SECONDS, Histogram
from styx.protocol.manifest import Manifest
from styx.protocol.messages import Broken, SnapshotEnded

if TYPE_CHECKING:
    from styx.cluster.coordinator.process import CoordinatorProcess
    from styx.cluster.coordinator.session import CoordinatorSession

_AWAY: Final = "away"
_UNKNOWN: Final = float("nan")


def exposition(process: CoordinatorProcess) -> Exposition:
    """All metrics of a coordinator process. Counters live as long as the process."""

    def collect() -> Iterator[Metric]:
        session = process.session
        yield from _counted(process)
        yield from _deployment(session)
        yield from _workers(session)
        yield from _snapshots(session)

    return Exposition(collect, with_process=True)


def _counted(process: CoordinatorProcess) -> Iterator[Metric]:
    counts = process.counters
    yield counters("styx_recoveries_total", "Recoveries, by cause.", "cause", counts.recoveries)
    yield gauge("styx_recovery_seconds", "How long the last recovery took, from its cause on.", counts.recovery_s)
    yield counter(*families.EPOCHS, counts.epochs)
    yield counter(*families.PATCH_ROUNDS, counts.patch_rounds)
    yield counter(*families.GIVEN_UP, counts.given_up)
    yield counter("styx_replayed_epochs_total", "Recorded epochs that recoveries had to run again.", counts.replayed)
    yield counter("styx_expelled_workers_total", "Workers given up for silence or lost connections.", counts.expelled)
    yield counter(*families.SNAPSHOTS, counts.snapshots_completed)
    yield counter(*families.SNAPSHOTS_FAILED, counts.snapshots_failed)
    yield histogram(
        "styx_snapshot_seconds", "From the end of a snapshot's epoch to its completion.", counts.snapshot_seconds
    )
    yield counter(*families.SNAPSHOT_BYTES, counts.snapshot_bytes)
    yield counter(*families.REFUSED, process.refused)
    outcomes = {"done": counts.deployed, "refused": counts.refused}
    yield counters("styx_deployments_total", "Deployments, by outcome.", "outcome", outcomes)


def _deployment(session: CoordinatorSession | None) -> Iterator[Metric]:
    core = None if session is None else session.core
    now = _AWAY if core is None else core.phase.name.lower()
    phases = [_AWAY, *(phase.name.lower() for phase in Phase)]
    yield gauges("styx_phase", "1 for where the deployment is.", "phase", {phase: phase == now for phase in phases})
    yield gauge("styx_generation", "Generation.", -1 if core is None else core.generation)
    yield gauge("styx_epoch", "The last epoch that has ended.", -1 if core is None else core.epoch)
    yield gauge("styx_app_version", "Version of the app that runs.", 0 if core is None else core.app_version)
    deploying = session is not None and session.plane.rollout.under_way is not None
    yield gauge("styx_deploying", "1 while a deployment is under way.", deploying)
    fenced = _UNKNOWN if session is None else not session.journal.log_away
    yield gauge(
        "styx_kafka_reachable", "0 while a generation waits for Kafka; NaN: the coordinator itself does.", fenced
    )


def _workers(session: CoordinatorSession | None) -> Iterator[Metric]:
    registered = 0 if session is None else len(session.plane.roster.workers)
    members = frozenset() if session is None else session.core.membership.members
    live = frozenset() if session is None else session.core.live
    leaving = () if session is None else [each.number for each in session.plane.roster.workers.values() if each.leaving]
    states = {
        "registered": registered,
        "live": len(live),
        "member": len(members),
        "standby": len(live - members - {*leaving}),
        "leaving": len(leaving),
    }
    yield gauges("styx_workers", "Workers, by state.", "state", states)
    wanted = 0 if session is None else session.core.workers_wanted
    yield gauge("styx_workers_wanted", "Workers that are to share the slots.", wanted)
    yield gauge("styx_gateways", "Gateways connected.", 0 if session is None else len(session.links.gateway_names))


def _snapshots(session: CoordinatorSession | None) -> Iterator[Metric]:
    age_s, failing_s, store, size = _UNKNOWN, 0.0, _UNKNOWN, 0
    if session is not None:
        watch, now_s = session.snapshots, time.monotonic()
        manifests = session.core.ledger.manifests
        age_s = _UNKNOWN if watch.stored_at_s is None else now_s - watch.stored_at_s
        failing_s = 0.0 if watch.failing_since_s is None else now_s - watch.failing_since_s
        store = float(watch.store_problem is None)
        size = whole_bytes(manifests[0]) if manifests else 0
    yield gauge(*families.SNAPSHOT_AGE, age_s)
    yield gauge("styx_snapshots_failing_seconds", "Since when snapshots fail; 0 if the last one did not.", failing_s)
    yield gauge("styx_snapshot_bytes", "Size of the newest snapshot, all its objects.", size)
    yield gauge("styx_store_reachable", "0 while the store refuses; NaN: the coordinator is away.", store)


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
    patch_rounds: int
    given_up: int


def moment(core: Coordinator) -> Moment:
    """The core as it is now."""
    storing, rounds = core.ledger.under_way is not None, core.rounds
    return Moment(
        core.phase,
        core.generation,
        core.epoch,
        core.snapshots_completed,
        storing,
        core.replayed,
        rounds.rounds,
        rounds.given_up,
    )


class CoordinatorCounters:
    """`clock` gives seconds. `recovery_s` is how long the last recovery took, from its cause until epochs ran again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.recoveries = dict.fromkeys(CAUSES, 0)
        self.recovery_s = 0.0
        self.epochs = 0
        self.replayed = 0
        self.patch_rounds = 0
        self.given_up = 0
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
        self.patch_rounds += core.rounds.rounds - before.patch_rounds
        self.given_up += core.rounds.given_up - before.given_up
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

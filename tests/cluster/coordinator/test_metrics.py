"""Recoveries are counted once, by what caused them; snapshots and epochs as the protocol decides them."""

from __future__ import annotations

import pytest

from styx.cluster.coordinator.metrics import CAUSES, CoordinatorCounters, moment, whole_bytes
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import (
    Effect,
    Event,
    Heard,
    ManifestStored,
    MarkerAppended,
    MembersFenced,
    NoteAppended,
    SnapshotWanted,
    Started,
    Tick,
    WorkerJoined,
    WorkerLost,
    WorkerSaid,
    WorkersWanted,
)
from styx.coordinator.generation import Phase
from styx.protocol.manifest import ObjectRef, SlotPart
from styx.protocol.messages import Broken, Conflicts, Done, Loaded, SlotsStored, SnapshotUnusable


class Observed:
    """A coordinator of two slots whose every step is counted, on a clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.counters = CoordinatorCounters(lambda: self.now_s)
        self.core = Coordinator(2, 2, silence_max_s=1.0)
        self.step(Started(0, []))
        for worker in (0, 1):
            self.step(WorkerJoined(worker))
        self.recovered()

    def step(self, event: Event) -> list[Effect]:
        before = moment(self.core)
        effects = self.core.step(event)
        self.counters.stepped(before, self.core, event, effects)
        return effects

    def recovered(self) -> None:
        """The members load, which takes two seconds."""
        self.now_s += 2.0
        self.step(MembersFenced(self.core.generation))
        self.step(MarkerAppended(self.core.generation))
        for worker in sorted(self.core.membership.members):
            self.step(WorkerSaid(worker, Loaded(self.core.generation, -1)))
        assert self.core.phase is Phase.RUNNING

    def manifest_stored(self) -> None:
        """And the log has taken the note."""
        generation, epoch = self.core.generation, self.core.epoch
        self.step(ManifestStored(generation, epoch, True))
        self.step(NoteAppended(generation, epoch))

    def epoch(self) -> None:
        """One without conflicts."""
        number, generation = self.core.epoch + 1, self.core.generation
        members = sorted(self.core.membership.members)
        for worker in members:
            self.step(WorkerSaid(worker, Done(generation, number, 0, [], [], [], [])))
        for worker in members:
            self.step(WorkerSaid(worker, Conflicts(generation, number, [])))

    def stored(self, slot: int, size: int | None) -> None:
        parts = None
        if size is not None:
            parts = [SlotPart(slot, 0, [], 0, {}, ObjectRef(f"slots/{slot}", size, b""))]
        self.step(WorkerSaid(0, SlotsStored(self.core.generation, self.core.epoch, parts)))


def counted(observed: Observed) -> dict[str, int]:
    return {cause: count for cause, count in observed.counters.recoveries.items() if count}


def test_the_start() -> None:
    observed = Observed()
    assert (counted(observed), observed.counters.recovery_s) == ({"start": 1}, 2.0)
    assert observed.counters.epochs == 0


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (WorkerLost(1), "worker_lost"),
        (WorkerSaid(1, Broken(1, 0, "gone")), "connection_broken"),
        (WorkerSaid(1, Broken(1, -1, "gone")), "log_lost"),
    ],
)
def test_causes(event: Event, cause: str) -> None:
    observed = Observed()
    observed.now_s = 100.0
    observed.step(event)
    observed.recovered()
    assert (counted(observed), observed.counters.recovery_s) == ({"start": 1, cause: 1}, 2.0)
    assert cause in CAUSES


def test_a_second_loss_during_a_recovery_belongs_to_it() -> None:
    observed = Observed()
    observed.step(WorkerSaid(1, Broken(1, 0, "gone")))
    observed.now_s += 5.0
    observed.step(WorkerLost(1))
    observed.recovered()
    assert (counted(observed), observed.counters.recovery_s) == ({"start": 1, "connection_broken": 1}, 7.0)


def test_silence_and_expulsion() -> None:
    observed = Observed()
    for second in range(1, 4):
        observed.step(Heard(0))
        observed.step(Tick(float(second)))
    observed.recovered()
    assert (counted(observed), observed.counters.expelled) == ({"start": 1, "worker_silent": 1}, 1)


def test_snapshots_and_epochs() -> None:
    observed = Observed()
    observed.step(SnapshotWanted())
    observed.epoch()
    observed.now_s += 3.0
    observed.stored(0, 100)
    observed.stored(1, 20)
    observed.manifest_stored()
    counters = observed.counters
    assert (counters.epochs, counters.snapshots_completed, counters.snapshots_failed) == (1, 1, 0)
    assert (counters.snapshot_bytes, counters.snapshot_seconds.count, counters.snapshot_seconds.total) == (120, 1, 3.0)
    assert whole_bytes(observed.core.ledger.manifests[0]) == 120
    observed.step(SnapshotWanted())
    observed.epoch()
    observed.stored(0, None)
    observed.stored(1, 20)
    assert (counters.epochs, counters.snapshots_completed, counters.snapshots_failed) == (2, 1, 1)


def test_a_planned_change() -> None:
    observed = Observed()
    observed.step(WorkersWanted(1))
    for _ in range(2):  # a snapshot under load, and one behind which nothing runs
        observed.epoch()
        for slot in (0, 1):
            observed.stored(slot, 1)
        observed.manifest_stored()
    observed.recovered()
    assert counted(observed) == {"start": 1, "planned": 1}


def test_a_snapshot_that_cannot_be_used() -> None:
    observed = Observed()
    observed.step(SnapshotWanted())
    observed.epoch()
    for slot in (0, 1):
        observed.stored(slot, 1)
    observed.manifest_stored()
    observed.step(WorkerLost(1))
    observed.step(MembersFenced(observed.core.generation))
    observed.step(MarkerAppended(observed.core.generation))
    observed.step(WorkerSaid(0, SnapshotUnusable(observed.core.generation, "damaged")))
    observed.recovered()
    assert counted(observed) == {"start": 1, "worker_lost": 1}, "the older snapshot belongs to the same recovery"


def test_deployments() -> None:
    counters = CoordinatorCounters()
    for done in (True, False, True):
        counters.deployment_ended(done)
    assert (counters.deployed, counters.refused) == (2, 1)

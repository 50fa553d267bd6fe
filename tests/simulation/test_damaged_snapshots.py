"""Damaged objects of the newest snapshot cost a longer replay and nothing else, with short chains and small objects.

The simulator's store loses nothing by itself, and its objects are too small to be divided.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from proof import chaos_app
from proof.simulation import SimulationFailure, random_plan, simulate
from proof.simulation.coordinator_process import CoordinatorProcess
from proof.simulation.plan import Fault, SimulationPlan
from proof.simulation.run import Simulation
from styx.coordinator import snapshot_ledger as snapshots
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import Effect, ReleaseLog
from styx.coordinator.snapshot_ledger import SnapshotLedger
from styx.protocol.manifest import Manifest
from styx.protocol.messages import SnapshotUnusable
from styx.snapshot import part as snapshot_io
from styx.snapshot.manifest import MANIFEST_PREFIX, beginning, read_generations, read_manifests
from styx.snapshot.part import SLOT_PREFIX
from styx.store import MemoryStore
from tests.simulation.mutation import Mutation

SEEDS = 12
CRASHES = tuple(Fault(kind, 0.13 * i, 0.02) for i, kind in enumerate(["coordinator crash", "crash of everything"] * 4))


def plan_of(seed: int) -> SimulationPlan:
    plan = random_plan(seed, cluster=seed % 2 == 1)
    return replace(plan, duration_s=1.0, bursts=50, snapshot_interval_s=0.01, faults=CRASHES)


def objects_of(manifests: Iterable[Manifest]) -> set[str]:
    return {ref.name for manifest in manifests for slot in manifest.slots for ref in slot.objects}


def damage(store: MemoryStore, name: str, rng: Random) -> None:
    data = store.get(name)
    middle = rng.randrange(len(data))
    damages = [data[:middle], data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :], None]
    chosen = rng.choice(damages)
    if chosen is None:
        store.delete(name)
    else:
        store.put(name, chosen)


@pytest.fixture
def fallbacks(monkeypatch: pytest.MonkeyPatch) -> list[Manifest]:
    """Now and then a coordinator's start finds an object damaged that only the newest manifest needs.

    The manifests that were not used for that.
    """
    monkeypatch.setattr(snapshots, "CHAIN_MIN", 2)
    monkeypatch.setattr(snapshots, "CHAIN_MAX", 4)
    monkeypatch.setattr(snapshot_io, "OBJECT_BYTES", 200)
    read, drop = CoordinatorProcess._read_metadata, SnapshotLedger.drop_newest
    damaged: set[str] = set()
    dropped: list[Manifest] = []

    def read_metadata(self: CoordinatorProcess) -> None:
        store, rng = self.world.store.objects, self.world.rng
        manifests = read_manifests(store)
        started = beginning(*manifests, read_generations(self.world.log.records))
        newest, older = started.manifests[:1], started.manifests[1:]
        names = objects_of(newest) - objects_of(older) - damaged
        if older and names and rng.random() < 0.7:
            name = rng.choice(sorted(names))
            damaged.add(name)
            damage(store, name, rng)
        read(self)

    def drop_newest(self: SnapshotLedger) -> Manifest:
        dropped.append(drop(self))
        return dropped[-1]

    monkeypatch.setattr(CoordinatorProcess, "_read_metadata", read_metadata)
    monkeypatch.setattr(SnapshotLedger, "drop_newest", drop_newest)
    return dropped


def simulate_all() -> None:
    for seed in range(SEEDS):
        simulate(plan_of(seed))


@pytest.mark.slow
def test_the_snapshot_before_is_as_good(fallbacks: list[Manifest]) -> None:
    simulate_all()
    assert len(fallbacks) >= SEEDS


def objects_go_that_only_the_older_manifest_needs(patch: pytest.MonkeyPatch) -> None:
    referenced = SnapshotLedger.referenced

    def of_the_newest(self: SnapshotLedger) -> frozenset[str]:
        return frozenset(objects_of(self.manifests[:1])) & referenced(self)

    patch.setattr(SnapshotLedger, "referenced", of_the_newest)


def the_log_is_released_behind_the_newest_manifest(patch: pytest.MonkeyPatch) -> None:
    complete, release = SnapshotLedger.complete, snapshots._release

    def completed(self: SnapshotLedger, manifest: Manifest) -> list[Effect]:
        effects = complete(self, manifest)
        return [release(manifest) if isinstance(effect, ReleaseLog) else effect for effect in effects]

    patch.setattr(SnapshotLedger, "complete", completed)


@pytest.mark.parametrize(
    "mutation",
    [
        objects_go_that_only_the_older_manifest_needs,
        the_log_is_released_behind_the_newest_manifest,
    ],
    ids=lambda mutation: mutation.__name__,
)
def test_what_the_snapshot_before_needs_is_kept(
    mutation: Mutation, fallbacks: list[Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail: here something goes that only the older manifest needs."""
    mutation(monkeypatch)
    with pytest.raises(SimulationFailure, match="the coordinator refused: "):
        simulate_all()


def refused_start(seed: int) -> tuple[set[str], set[str]]:
    """What the store holds before and after a start that is refused, for every snapshot is damaged: the newest in its
    manifest, the others in their objects.
    """
    simulation = Simulation(
        replace(random_plan(seed), ingests=0.0, faults=(), snapshot_interval_s=0.01), chaos_app.app, "", False
    )
    world = simulation.world
    simulation.run(check=True)
    store = world.store.objects
    newest, *older = store.list(MANIFEST_PREFIX)[::-1]
    store.put(newest, b"damaged")
    assert older
    for name in store.list(SLOT_PREFIX):
        store.put(name, b"damaged")
    before = set(store.list(""))
    for worker in list(world.workers):
        world.crash_worker(worker)
        world.start_worker(worker)
    world.crash_coordinator()
    world.start_coordinator()
    coordinator = world.coordinator
    assert coordinator is not None
    while coordinator.refused is None:
        assert world.time.next()
    until_s = world.time.now_s + 1.0
    while world.time.now_s < until_s and world.time.next():
        pass
    return before, set(store.list(""))


def test_a_start_that_is_refused_changes_nothing_in_the_store() -> None:
    before, after = refused_start(3)
    assert before == after


def test_what_a_refused_start_leaves_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: here unusable manifests go before an older snapshot has proved to be enough."""
    take, fail = Coordinator._take_change, Coordinator._load_failed

    def at_once(self: Coordinator) -> None:
        self._effects += self._unusable
        self._unusable = []

    def take_change(self: Coordinator, event: Any) -> None:
        take(self, event)
        at_once(self)

    def load_failed(self: Coordinator, message: SnapshotUnusable) -> None:
        fail(self, message)
        at_once(self)

    monkeypatch.setattr(Coordinator, "_take_change", take_change)
    monkeypatch.setattr(Coordinator, "_load_failed", load_failed)
    before, after = refused_start(3)
    assert after < before

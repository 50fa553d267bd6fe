"""Damaged objects of the newest snapshot cost a longer replay and nothing else, with short chains and small objects.

The simulator's store loses nothing by itself, and its objects are too small to be divided.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from msgspec.structs import replace

from proof.simulation import SimulationFailure, random_plan, simulate
from proof.simulation.coordinator_process import CoordinatorProcess
from proof.simulation.plan import Fault, SimulationPlan
from styx.coordinator import snapshot_ledger as snapshots
from styx.coordinator.snapshot_ledger import SnapshotLedger
from styx.protocol.manifest import Manifest
from styx.snapshot import manifest as metadata
from styx.snapshot import store as snapshot_io
from styx.store import MemoryStore

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
        manifests = metadata.read_manifests(store)
        started = metadata.beginning(*manifests, metadata.read_generations(self.world.log.records))
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


def test_what_the_snapshot_before_needs_is_kept(fallbacks: list[Manifest], monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: here objects go that only the older manifest needs."""
    referenced = SnapshotLedger.referenced

    def of_the_newest(self: SnapshotLedger) -> frozenset[str]:
        return frozenset(objects_of(self.manifests[:1])) & referenced(self)

    monkeypatch.setattr(SnapshotLedger, "referenced", of_the_newest)
    with pytest.raises(SimulationFailure, match="the coordinator refused: "):
        simulate_all()

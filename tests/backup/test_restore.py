"""Restoring: into which store, from which backup, with which manifest; and the coordinator that begins on it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from styx.backup.index import Damaged, encode_index, entry_of, index_name, object_name
from styx.backup.places import read_index
from styx.backup.restore import (
    COUNTERS_PER_SECOND,
    COUNTERS_SKIPPED,
    Backup,
    check_store,
    counter_at,
    restore,
    restored_manifest,
    verify,
)
from styx.backup.take import take_backup
from styx.coordinator.coordinator import Coordinator
from styx.coordinator.events import AppendMarker, MarkerAppended, MembersFenced, TellWorker, Tick, WorkerJoined
from styx.deployment.claim import Claim, claim, read_claim
from styx.deployment.package_format import unseal
from styx.deployment.versions import load_published, load_version, load_version_before, versions
from styx.errors import ConfigurationError
from styx.model.limits import Limits
from styx.protocol.messages import Recover
from styx.sequencer.epoch_record import EpochRecord, GenerationMarker, LogEntry, SlotBatch, replay_plan
from styx.snapshot.manifest import MANIFEST_PREFIX, Generations, beginning, read_manifests
from styx.store import MemoryStore
from tests.backup.snapshots import PENDING, PUBLISHED, SECRET, SLOTS, Cluster, Reader, flipped, tables

pytestmark = pytest.mark.usefixtures("no_pauses")
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW_S = 1_800_000_000.0
NEW_SECRET = b"the new cluster's own secret"
WANTED = Claim("bank", SLOTS, 3, Limits())


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for epoch in range(3):
        cluster.snapshot(epoch, {f"k{epoch}": b"1", "all": b"%d" % epoch})
    return cluster


@pytest.fixture
def place(cluster: Cluster) -> MemoryStore:
    place = MemoryStore()
    take_backup(Reader(cluster.store), place, AT)
    return place


def verified(place: MemoryStore, secret: bytes = SECRET) -> Backup:
    return verify(Reader(place), *read_index(place), secret)


class CutOff(MemoryStore):
    """Fails at put number `left` and at all that follow."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    def put(self, name: str, data: bytes) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError("the store is away")
        super().put(name, data)

    def put_new(self, name: str, data: bytes) -> bool:
        if name.startswith(MANIFEST_PREFIX):
            self.left -= 1
            if self.left < 0:
                raise OSError("the store is away")
        return super().put_new(name, data)


def test_a_restored_store_is_the_cluster_s(cluster: Cluster, place: MemoryStore) -> None:
    store = MemoryStore()
    restore(Reader(place), verified(place), store, NEW_SECRET, NOW_S)
    assert claim(store, WANTED) == WANTED
    manifests, damaged = read_manifests(store)
    assert (manifests, damaged) == ([restored_manifest(cluster.manifests[0], NOW_S)], [])
    assert tables(store, manifests[0]) == tables(cluster.store, cluster.manifests[0])
    rows = tables(store, manifests[0])[0]["cart/items"]
    assert rows == {("ada", "k0"): b"1", ("ada", "k1"): b"1", ("ada", "k2"): b"1", ("ada", "all"): b"2"}
    assert tables(store, manifests[0])[1]["cart/<sequences>"] == {("ada", "table\titems"): b"\x02"}
    assert versions(store) == [1, 3], "numbers are not given again"
    package, before = load_version(store, 3), load_version_before(store, 3)
    assert package is not None
    assert before is not None
    assert (unseal(package, NEW_SECRET)[1], unseal(before, NEW_SECRET)[1]) == (b"three", b"one")
    assert load_published(store, 3) == PUBLISHED
    with pytest.raises(ConfigurationError, match="made with 2 slots"):
        claim(store, replace(WANTED, n_slots=4))


def test_another_secret_than_the_old_cluster_s(place: MemoryStore) -> None:
    with pytest.raises(ConfigurationError, match=r"signature is wrong.*give it with --from-secret-file"):
        verified(place, NEW_SECRET)


def test_a_store_that_is_not_empty(cluster: Cluster, place: MemoryStore) -> None:
    backup = verified(place)
    for store in (cluster.store, MemoryStore()):
        store.put("slots/x", b"")
        before = {name: store.get(name) for name in store.list("")}
        with pytest.raises(ConfigurationError, match=r"the store is not empty, '(apps-that-ran|slots)/.*' is there"):
            restore(Reader(place), backup, store, SECRET, NOW_S)
        assert {name: store.get(name) for name in store.list("")} == before
    check_store(MemoryStore(), backup.name)


def test_an_interrupted_restore_is_nobody_s_and_can_be_run_again(cluster: Cluster, place: MemoryStore) -> None:
    backup = verified(place)
    interrupted = 0
    for left in range(20):
        store = CutOff(left)
        try:
            restore(Reader(place), backup, store, SECRET, NOW_S)
        except OSError:
            interrupted += 1
        else:
            break
        with pytest.raises(ConfigurationError, match="run it again"):
            claim(store, WANTED)
        with pytest.raises(ConfigurationError, match=r"the restore of backup .* has not ended"):
            check_store(store, "another")
        with pytest.raises(ConfigurationError, match="has not ended"):
            take_backup(Reader(store), MemoryStore(), AT)
        store.left = 100
        restore(Reader(place), backup, store, SECRET, NOW_S)
        assert claim(store, WANTED) == WANTED
        manifest = read_manifests(store)[0][0]
        assert tables(store, manifest) == tables(cluster.store, cluster.manifests[0])
    # 3 objects, 2 versions with their notes, manifest and claim
    assert interrupted == 9


def test_one_that_another_restore_overtakes_changes_nothing(place: MemoryStore) -> None:
    """Two pods restore the same backup, and a coordinator is at work on what the first one made."""
    backup, store = verified(place), MemoryStore()
    put = store.put

    def overtaken(name: str, data: bytes) -> None:
        store.put = put  # type: ignore[method-assign]
        restore(Reader(place), backup, store, SECRET, NOW_S)
        put(name, data)

    store.put = overtaken  # type: ignore[method-assign]
    restore(Reader(place), backup, store, SECRET, NOW_S + 60)
    assert read_manifests(store)[0] == [restored_manifest(backup.manifest, NOW_S)]
    assert claim(store, WANTED) == WANTED


def test_a_coordinator_that_was_first(place: MemoryStore) -> None:
    store = MemoryStore()
    listed = store.list
    claim(store, WANTED)
    store.list = lambda prefix: [] if prefix == "" else listed(prefix)  # type: ignore[method-assign]
    with pytest.raises(ConfigurationError, match="another process has begun to use the store"):
        restore(Reader(place), verified(place), store, SECRET, NOW_S)
    found = read_claim(store)
    assert found is not None
    assert not found.restoring


def test_every_damage_is_named_before_anything_is_written(place: MemoryStore) -> None:
    name, index = read_index(place)
    for entry in index.objects:
        where = object_name(name, entry.name)
        data = place.get(where)
        for position in {0, len(data) // 2, len(data) - 1}:
            place.put(where, flipped(data, position))
            with pytest.raises(Damaged, match=f"the object {entry.name} in backup {name} is damaged"):
                verified(place)
        place.delete(where)
        with pytest.raises(Damaged, match=f"lacks the object {entry.name}"):
            verified(place)
        place.put(where, data)
    verified(place)


def test_objects_of_another_snapshot_are_noticed(place: MemoryStore) -> None:
    name, index = read_index(place)
    entry = next(each for each in index.objects if each.name.startswith("slots/"))
    other = flipped(place.get(object_name(name, entry.name)), 40)
    place.put(object_name(name, entry.name), other)
    objects = [entry_of(each.name, other) if each == entry else each for each in index.objects]
    place.put(index_name(name), encode_index(replace(index, objects=objects)))
    with pytest.raises(Damaged, match=f"{entry.name} is damaged: its checksum does not match its manifest's"):
        verified(place)


def test_an_index_that_names_too_little(place: MemoryStore) -> None:
    name, index = read_index(place)
    for entry in index.objects:
        if entry.name in ("apps/0000000001", "apps-that-ran/0000000003"):
            continue  # it is only to go back to; and older releases have no types of events
        fewer = replace(index, objects=[each for each in index.objects if each != entry])
        place.put(index_name(name), encode_index(fewer))
        with pytest.raises(Damaged, match=entry.name):
            verified(place)


def test_a_backup_by_its_name(cluster: Cluster, place: MemoryStore) -> None:
    first, _ = read_index(place)
    cluster.snapshot(9, {"all": b"9"})
    second = take_backup(Reader(cluster.store), place, AT.replace(year=2027)).name
    assert read_index(place)[0] == second
    assert read_index(place, first)[1].epoch == 2
    with pytest.raises(ConfigurationError, match=f"there is no backup 'x' here; the last ones are {first}, {second}"):
        read_index(place, "x")


def test_it_is_verified_again_while_it_is_copied(place: MemoryStore) -> None:
    backup = verified(place)
    where = next(name for name in place.list("data/") if "/slots/" in name)
    place.put(where, flipped(place.get(where), 30))
    store = MemoryStore()
    with pytest.raises(Damaged, match=r"slots/.* is damaged"):
        restore(Reader(place), backup, store, SECRET, NOW_S)
    with pytest.raises(ConfigurationError, match="run it again"):
        claim(store, WANTED)


def test_offsets_begin_anew_and_all_else_stays() -> None:
    made = Cluster().snapshot(41, {"ada": b"1"})
    restored = restored_manifest(made, NOW_S)
    assert (restored.generation, restored.epoch, restored.app_version) == (4, 41, 3)
    for before, after in zip(made.slots, restored.slots, strict=True):
        assert after.objects == before.objects
        part = after.part
        assert (part.next_offset, part.epochs_offset, part.replies, part.events) == (0, 0, {}, {})
        assert (part.slot, part.stored, part.whole) == (before.part.slot, before.part.stored, before.part.whole)
    (pending,) = restored.slots[0].part.pending
    for field in ("tid", "timestamp_us", "payload", "sequential", "parked", "externals", "repeats"):
        assert getattr(pending, field) == getattr(PENDING, field), field


def test_no_transaction_id_is_given_again() -> None:
    first = counter_at(5_000, NOW_S)
    assert first == NOW_S * COUNTERS_PER_SECOND
    # The cluster goes on for a day, fast, and both it and the restored one are then restored.
    assert counter_at(5_000, NOW_S + 86_400) > first + 86_400 * (COUNTERS_PER_SECOND - 1)
    # A clock that is wrong.
    assert counter_at(first, 0.0) == first + COUNTERS_SKIPPED
    # TIDs stay below the largest integer that a program with doubles only has, with 128 slots for 80 years.
    assert counter_at(0, NOW_S + 80 * 365 * 86_400) * 128 < 2**53


def test_a_coordinator_begins_its_next_generation_on_it() -> None:
    manifest = restored_manifest(Cluster().snapshot(41, {"ada": b"1"}), NOW_S)
    started = beginning([manifest], [], Generations([], 0))
    assert (started.generation, started.manifests, started.app_version, started.unusable) == (4, [manifest], 3, [])
    core = Coordinator(SLOTS)
    core.step(started)
    core.step(WorkerJoined(1))
    assert core.step(MembersFenced(5)) == [AppendMarker(5, 41, 3)]
    (told,) = core.step(MarkerAppended(5))
    assert isinstance(told, TellWorker)
    assert isinstance(told.message, Recover)
    assert told.message.manifest == manifest
    assert (core.epoch, core.step(Tick(1.0))) == (41, [])


def test_the_next_coordinator_begins_on_it_too_before_there_is_another_snapshot() -> None:
    manifest = restored_manifest(Cluster().snapshot(41, {"ada": b"1"}), NOW_S)
    marker = GenerationMarker(5, 41, 3)
    started = beginning([manifest], [], Generations([(0, marker)], 5))
    assert (started.generation, started.manifests, started.app_version, started.unusable) == (5, [manifest], 3, [])
    core = Coordinator(SLOTS)
    core.step(started)
    core.step(WorkerJoined(1))
    assert core.step(MembersFenced(6)) == [AppendMarker(6, 41, 3)]
    records: list[LogEntry] = [
        marker,
        EpochRecord(5, 42, manifest.counter, [SlotBatch(slot, 0, 1, 1) for slot in range(SLOTS)]),
    ]
    (plan,) = replay_plan(records, SLOTS, manifest.epoch, manifest.generation, 6)
    assert (plan.epoch, plan.counter) == (42, manifest.counter)

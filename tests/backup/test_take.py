"""Taking a backup from a store whose coordinator goes on meanwhile, and from damaged ones."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from styx.backup.index import Damaged
from styx.backup.places import backups, keep_newest, read_index
from styx.backup.restore import verify
from styx.backup.take import FRUITLESS_MAX, take_backup
from styx.errors import ConfigurationError, EngineFailed
from styx.snapshot.manifest import manifest_name
from styx.store import MemoryStore, StoreReader
from tests.backup.snapshots import SECRET, Cluster, Reader, flipped, package, tables

pytestmark = pytest.mark.usefixtures("no_pauses")
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    for epoch in range(4):
        cluster.snapshot(epoch, {f"k{epoch}": b"1", "all": b"%d" % epoch})
    return cluster


def contents(store: StoreReader) -> dict[str, bytes]:
    return {name: store.get(name) for name in store.list("")}


def test_a_backup_has_what_the_snapshot_needs_and_nothing_else(cluster: Cluster) -> None:
    before, place = contents(cluster.store), MemoryStore()
    taken = take_backup(Reader(cluster.store), place, AT, SECRET)
    assert contents(cluster.store) == before, "the source is left as it was"
    assert (taken.name, taken.pending, taken.index.epoch, taken.index.app_version) == ("20260102T030405.000Z", 1, 3, 3)
    objects = {entry.name for entry in taken.index.objects}
    manifest = cluster.manifests[0]
    # Version 2 never ran.
    assert objects == {
        *("deployment", "apps/0000000001", "apps/0000000003", "apps-that-ran/0000000003", manifest_name(4, 3)),
        *(ref.name for ref in manifest.slots[0].objects),
    }
    assert set(place.list("")) == {f"backups/{taken.name}"} | {f"data/{taken.name}/{name}" for name in objects}
    name, index = read_index(place)
    backup = verify(place, name, index, SECRET)
    assert backup.manifest == manifest
    assert {number: payload for number, (_, payload) in backup.packages.items()} == {1: b"one", 3: b"three"}


def test_it_goes_on_with_the_next_snapshot_when_objects_go(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.backup.places.COPIES_AT_ONCE", 1)
    place, epoch, reads = MemoryStore(), 4, 0

    def snapshots(name: str) -> None:
        nonlocal epoch, reads
        reads += name.startswith("slots/")
        # With two objects copied, then with one of the next chain.
        while (reads >= 3 and epoch < 6) or (reads >= 5 and epoch < 8):
            cluster.snapshot(epoch, {f"k{epoch}": b"1", "all": b"%d" % epoch}, whole=epoch in (4, 6))
            epoch += 1

    said: list[str] = []
    taken = take_backup(Reader(cluster.store, snapshots), place, AT, tell=said.append)
    assert taken.index.epoch == 7, "of the snapshots that it met, the newest could be copied"
    assert len(said) == 3
    name, index = read_index(place)
    backup = verify(place, name, index, SECRET)
    assert tables(cluster.store, cluster.manifests[0]) == tables_of_backup(place, name, backup.manifest)
    slots = {each.name for each in index.objects if each.name.startswith("slots/")}
    assert slots == {ref.name for slot in backup.manifest.slots for ref in slot.objects}
    assert {each.name for each in index.objects} == {
        each.removeprefix(f"data/{name}/") for each in place.list("data/")
    }, "nothing of the snapshots that it gave up is left"


def tables_of_backup(place: StoreReader, name: str, manifest: object) -> object:
    restored = MemoryStore()
    for each in place.list(f"data/{name}/slots/"):
        restored.put(each.removeprefix(f"data/{name}/"), place.get(each))
    return tables(restored, manifest)  # type: ignore[arg-type]


def test_it_gives_up_when_snapshots_are_faster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.backup.places.COPIES_AT_ONCE", 1)
    epoch, reads = 4, 0

    def snapshots(name: str) -> None:
        nonlocal epoch, reads
        if name.startswith("slots/"):
            reads += 1
            for _ in range(2):
                cluster.snapshot(epoch, {"all": b"x"}, whole=True)
                epoch += 1

    place = MemoryStore()
    with pytest.raises(OSError, match=rf"{FRUITLESS_MAX} snapshots were replaced faster"):
        take_backup(Reader(cluster.store, snapshots), place, AT)
    assert backups(place) == []
    assert reads <= FRUITLESS_MAX + 4


def test_a_missing_object_is_named(cluster: Cluster) -> None:
    gone = cluster.store.list("slots/")[0]
    cluster.store.delete(gone)
    place = MemoryStore()
    with pytest.raises(Damaged, match=f"the store lacks the object {re.escape(gone)}"):
        take_backup(Reader(cluster.store), place, AT)
    assert backups(place) == []


@pytest.mark.parametrize("prefix", ["slots/", "apps/0000000003", "deployment", "manifests/"])
def test_damage_is_named(cluster: Cluster, prefix: str) -> None:
    for name in cluster.store.list(prefix):
        data = cluster.store.get(name)
        # The claim has no checksum.
        cluster.store.put(name, flipped(data, 0 if prefix == "deployment" else len(data) // 2))
    place = MemoryStore()
    with pytest.raises(EngineFailed, match=prefix) as caught:
        take_backup(Reader(cluster.store), place, AT, SECRET)
    assert "damaged" in str(caught.value) or "cannot be used" in str(caught.value)
    assert backups(place) == []


def test_a_claim_of_another_cluster_is_noticed(cluster: Cluster) -> None:
    data = cluster.store.get("deployment")
    cluster.store.put("deployment", data.replace(b'"n_slots":2', b'"n_slots":3'))
    with pytest.raises(Damaged, match="deployment tells of 3 slots, and the snapshot of epoch 3 has 2"):
        take_backup(Reader(cluster.store), MemoryStore(), AT)


def test_a_damaged_manifest_leaves_the_one_before(cluster: Cluster) -> None:
    name = manifest_name(4, 3)
    cluster.store.put(name, flipped(cluster.store.get(name), 40))
    said: list[str] = []
    assert take_backup(Reader(cluster.store), MemoryStore(), AT, tell=said.append).index.epoch == 2
    assert f"the manifest {name} is damaged" in said[0]


def test_the_newest_generation_counts(cluster: Cluster) -> None:
    """A coordinator that was replaced may have stored a later epoch."""
    cluster.snapshot(2, {"all": b"of generation 5"}, generation=5)
    assert take_backup(Reader(cluster.store), MemoryStore(), AT).index.generation == 5


def test_an_interrupted_backup_is_none_and_can_be_repeated(cluster: Cluster) -> None:
    reads = 0

    def cut_off(name: str) -> None:
        nonlocal reads
        reads += name.startswith("slots/")
        if reads > 2:
            raise OSError("the store is away")

    place = MemoryStore()
    with pytest.raises(OSError, match="the store is away"):
        take_backup(Reader(cluster.store, cut_off), place, AT)
    assert place.list("data/"), "it had begun"
    with pytest.raises(ConfigurationError, match="there is no backup here"):
        read_index(place)
    later = take_backup(Reader(cluster.store), place, AT + timedelta(seconds=1))
    assert read_index(place)[0] == later.name
    assert keep_newest(place, 1, later.name) == ["20260102T030405.000Z"]
    assert {name.split("/")[1] for name in place.list("")} == {later.name}


def test_only_so_many_are_kept(cluster: Cluster) -> None:
    place = MemoryStore()
    names = [take_backup(Reader(cluster.store), place, AT + timedelta(days=day)).name for day in range(4)]
    assert keep_newest(place, 3, names[-1]) == names[:1]
    assert keep_newest(place, 3, names[-1]) == []
    assert backups(place) == names[1:]
    assert {name.split("/")[1] for name in place.list("data/")} == set(names[1:])
    assert keep_newest(place, 1, names[1]) == names[2:], "a clock was set back, and the newest is not the last by name"
    assert {name.split("/")[1] for name in place.list("")} == {names[1]}


def test_a_store_that_was_away_for_a_moment_is_asked_again(cluster: Cluster) -> None:
    failures = [OSError("away"), OSError("away")]

    def sometimes(_: str) -> None:
        if failures:
            raise failures.pop()

    assert take_backup(Reader(cluster.store, sometimes), MemoryStore(), AT).index.epoch == 3


def test_what_is_no_cluster_or_no_place(cluster: Cluster) -> None:
    with pytest.raises(ConfigurationError, match="no cluster has its data in this store"):
        take_backup(Reader(MemoryStore()), MemoryStore(), AT)
    with pytest.raises(ConfigurationError, match="--to is the store of a cluster"):
        take_backup(Reader(cluster.store), Cluster().store, AT)
    with pytest.raises(OSError, match="the store has no snapshot yet"):
        take_backup(Reader(Cluster().store), MemoryStore(), AT)
    place = MemoryStore()
    take_backup(Reader(cluster.store), place, AT)
    other = MemoryStore()
    for name, data in contents(cluster.store).items():
        other.put(name, data.replace(b'"bank"', b'"shop"') if name == "deployment" else data)
    with pytest.raises(ConfigurationError, match="--to has backups of app 'bank'"):
        take_backup(Reader(other), place, AT)


def test_another_secret_is_noticed(cluster: Cluster) -> None:
    cluster.store.put("apps/0000000001", package(b"one", b"another secret than theirs"))
    with pytest.raises(Damaged, match=r"apps/0000000001.*signature is wrong"):
        take_backup(Reader(cluster.store), MemoryStore(), AT, SECRET)

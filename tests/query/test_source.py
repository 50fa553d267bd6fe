"""Snapshots of a cluster's store, of backups and of data directories are found, and what is missing is said."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

import styx
from styx.backup.index import Damaged
from styx.backup.take import take_backup
from styx.deployment.claim import NAME, Claim, encode_claim
from styx.errors import ConfigurationError
from styx.query.schema import of_description
from styx.query.slots import Slots
from styx.query.source import of_backup, of_cluster, of_directory
from styx.store import MemoryStore
from tests.backup.snapshots import SECRET, Cluster, flipped
from tests.query.conftest import Filled
from tests.query.shop import app


@pytest.fixture
def cluster() -> Cluster:
    """With two snapshots."""
    cluster = Cluster()
    cluster.snapshot(10, {"a": b"1", "b": b"2"})
    cluster.snapshot(20, {"a": b"3"})
    return cluster


def test_the_newest_snapshot_of_a_cluster_and_an_older_one(cluster: Cluster) -> None:
    newest, older = of_cluster(cluster.store), of_cluster(cluster.store, "10")
    assert (newest.named, older.named) == ("the snapshot of epoch 20", "the snapshot of epoch 10")
    assert (newest.n_slots, newest.description.name) == (2, "bank")
    assert Slots(newest).entries(0, {"account"}) == {"account": {"a": b"3", "b": b"2"}}
    assert Slots(older).entries(0, {"account"}) == {"account": {"a": b"1", "b": b"2"}}


def test_a_backup_has_what_the_store_had(cluster: Cluster) -> None:
    place = MemoryStore()
    first = take_backup(cluster.store, place, datetime(2026, 1, 2, tzinfo=UTC)).name
    cluster.snapshot(30, {"a": b"4"})
    second = take_backup(cluster.store, place, datetime(2026, 1, 3, tzinfo=UTC), SECRET).name
    assert of_backup(place).named == f"backup {second}, epoch 30"
    older = of_backup(place, first, SECRET)
    assert older.named == f"backup {first}, epoch 20"
    assert Slots(older).value(1, "account", "a") == b"3"
    with pytest.raises(ConfigurationError, match=f"there is no backup 'x' here; the last ones are {first}, {second}"):
        of_backup(place, "x")
    with pytest.raises(ConfigurationError, match="there is no backup here"):
        of_backup(cluster.store)


def test_what_is_not_there(cluster: Cluster) -> None:
    with pytest.raises(ConfigurationError, match="no cluster has its data in this store: give the --store"):
        of_cluster(MemoryStore())
    with pytest.raises(ConfigurationError, match="no snapshot '15': a snapshot is latest, or one of the epochs 20, 10"):
        of_cluster(cluster.store, "15")
    for name in cluster.store.list("manifests/"):
        cluster.store.delete(name)
    with pytest.raises(OSError, match="there is no snapshot yet"):
        of_cluster(cluster.store)


def test_a_restore_that_has_not_ended(cluster: Cluster) -> None:
    cluster.store.put(NAME, encode_claim(Claim("bank", 2, restoring="june")))
    with pytest.raises(ConfigurationError, match="the restore of backup june into this store has not ended"):
        of_cluster(cluster.store)


def test_what_is_damaged(cluster: Cluster) -> None:
    newest = cluster.store.list("manifests/")[-1]
    cluster.store.put(newest, flipped(cluster.store.get(newest), 20))
    assert of_cluster(cluster.store).manifest.epoch == 10
    for name in cluster.store.list("manifests/"):
        cluster.store.put(name, b"")
    with pytest.raises(Damaged, match="all manifests in the store are damaged"):
        of_cluster(cluster.store)


def test_the_package_s_signature_counts_where_there_is_a_secret(cluster: Cluster) -> None:
    assert of_cluster(cluster.store, secret=SECRET).description == of_cluster(cluster.store).description
    with pytest.raises(Damaged, match="the package's signature is wrong"):
        of_cluster(cluster.store, secret=b"another")
    cluster.store.delete("apps/0000000003")
    with pytest.raises(Damaged, match="the store lacks apps/0000000003"):
        of_cluster(cluster.store)


def test_a_directory_while_its_engine_runs(filled: Filled, tmp_path: Path) -> None:
    source = filled.source
    assert (source.n_slots, source.description.name) == (5, "look")
    assert "counter" in of_description(source.description).datasets
    with pytest.raises(ConfigurationError, match="is no data directory"):
        of_directory(tmp_path)

    async def run() -> None:
        async with styx.embedded(app, tmp_path / "data") as client:
            await client.call("counter", 1, "count")
            with pytest.raises(OSError, match=r"log\.db has what was recorded: start the app, and stop it"):
                of_directory(tmp_path / "data")
        async with styx.embedded(app, tmp_path / "data") as client:
            await client.call("counter", 1, "count")
            source = of_directory(tmp_path / "data")
            assert [Slots(source).value(slot, "counter", 1) for slot in Slots(source).numbers].count(b"\1") == 1

    asyncio.run(run())

"""Entries come slot by slot, and no more of the objects is read than what is asked for needs."""

from __future__ import annotations

import pytest

from styx.query.slots import Gone, Slots
from styx.query.source import Source, of_cluster
from styx.snapshot.part import ObjectCorrupt
from tests.backup.snapshots import Cluster, Reader, flipped


@pytest.fixture
def cluster() -> Cluster:
    """Each slot has a chain of three parts."""
    cluster = Cluster()
    cluster.snapshot(10, {"a": b"1", "b": b"2"})
    cluster.snapshot(20, {"a": b"3"})
    cluster.snapshot(30, {"c": b"4"})
    return cluster


def watched(cluster: Cluster) -> tuple[Source, list[str]]:
    """The newest snapshot, and the names of the objects that are read."""
    read: list[str] = []
    source = of_cluster(Reader(cluster.store, read.append))
    read.clear()
    return source, read


def test_newer_parts_hide_older_ones(cluster: Cluster) -> None:
    entries = Slots(of_cluster(cluster.store)).entries(1, {"account", "of-1", "of-0"})
    assert entries == {"account": {"a": b"3", "b": b"2", "c": b"4"}, "of-1": {"a": b"3", "b": b"2", "c": b"4"}}


def test_slots_are_read_when_they_are_taken(cluster: Cluster) -> None:
    source, read = watched(cluster)
    entries = Slots(source).all_entries({"account"})
    assert read == []
    assert next(entries)
    assert len(read) == 3
    assert next(entries)
    assert len(read) == 6
    assert next(entries, None) is None


def test_a_value_is_looked_for_from_the_newest_object_on(cluster: Cluster) -> None:
    source, read = watched(cluster)
    for key, value, objects in (("c", b"4", 1), ("a", b"3", 2), ("b", b"2", 3), ("d", None, 3)):
        read.clear()
        assert Slots(source).value(0, "account", key) == value
        assert len(read) == objects


def test_an_object_that_is_gone_and_one_that_is_damaged(cluster: Cluster) -> None:
    source, _ = watched(cluster)
    last = cluster.store.list("slots/")[-1]
    data = cluster.store.get(last)
    cluster.store.put(last, flipped(data, len(data) // 4))
    with pytest.raises(ObjectCorrupt, match="its checksum does not match"):
        Slots(source).value(0, "account", "a")
    cluster.store.delete(last)
    with pytest.raises(Gone, match=r"not have slots/.* any more, an object of the snapshot of epoch 30\. Run it again"):
        Slots(source).entries(0, {"account"})

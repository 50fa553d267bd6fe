"""A follower's state equals that of a load of the same snapshot, whatever the store lacks or does meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from styx.query.schema import Schema, of_description
from styx.query.source import Place
from styx.replica.follower import AGAIN_SECONDS, Follower
from styx.replica.state import is_shown
from styx.schema.description import AppDescription, OperatorDescription
from styx.store import MemoryStore, StoreReader
from tests.backup.snapshots import SLOTS, Cluster, Reader, flipped, tables

LARGE = 2**40
Content = dict[int, dict[str, Mapping[Any, bytes]]]


class Away(Reader):
    """A store that can be out of reach, and counts what is read."""

    def __init__(self, store: StoreReader) -> None:
        super().__init__(store, self.reading)
        self.away = False
        self.read: list[str] = []

    def reading(self, name: str) -> None:
        self.read.append(name)

    def list(self, prefix: str) -> list[str]:
        if self.away:
            raise ConnectionError("nobody answers")
        return super().list(prefix)


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


OPERATOR = OperatorDescription(key_type="str", n_partitions=None, partition_key=False, functions={})


def described(version: int) -> AppDescription:
    """Each version has an operator more."""
    return AppDescription(name="bank", operators={f"op{at}": OPERATOR for at in range(version)})


def follower(store: StoreReader, clock: Clock | None = None, bytes_max: int = LARGE) -> Follower:
    return Follower(lambda: Place(store, described), of_description, bytes_max, clock or Clock())


def content(follower: Follower) -> Content:
    assert follower.moment is not None
    state = follower.moment.state
    return {
        slot: {name: dict(table.entries()) for name, table in tables.items()} for slot, tables in state.slots.items()
    }


def loaded(cluster: Cluster) -> Content:
    """What a worker would load of the newest snapshot, as far as queries see it."""
    found = tables(cluster.store, cluster.manifests[0])
    return {
        slot: {name: dict(entries) for name, entries in by.items() if is_shown(name) and entries}
        for slot, by in found.items()
    }


@pytest.mark.parametrize("seed", range(8))
def test_it_equals_a_load_of_each_snapshot(seed: int) -> None:
    rng, cluster = Random(seed), Cluster()
    following = follower(cluster.store)
    generation = 4
    for epoch in range(1, 30):
        values = {f"k{rng.randrange(12)}": rng.randbytes(rng.randrange(6)) for _ in range(rng.randrange(5))}
        generation += rng.random() < 0.1
        cluster.snapshot(epoch, values, whole=rng.random() < 0.2, generation=generation)
        if rng.random() < 0.7:  # it misses some
            assert following.look()
            assert following.moment is not None
            assert following.moment.state.epoch == epoch
            assert content(following) == loaded(cluster)
    assert following.trouble is None


def test_it_reads_only_what_is_new() -> None:
    cluster = Cluster()
    store = Away(cluster.store)
    following = follower(store)
    cluster.snapshot(1, {"a": b"1"}, whole=True)
    assert following.look()
    store.read.clear()
    assert not following.look()
    assert store.read == []
    cluster.snapshot(2, {"b": b"2"})
    cluster.snapshot(3, {"c": b"3"})
    assert following.look()
    assert [name.rpartition("/")[0] for name in store.read] == ["manifests", "slots", "slots"]
    assert not any("0000001-" in name for name in store.read)
    store.read.clear()
    cluster.snapshot(4, {"d": b"4"}, whole=True)
    assert following.look()
    assert [name.rpartition("/")[0] for name in store.read] == ["manifests", "slots"]
    assert content(following)[0]["account"] == {"d": b"4"}


def test_what_it_held_stays_while_a_reader_has_it() -> None:
    cluster = Cluster()
    following = follower(cluster.store)
    cluster.snapshot(1, {"a": b"1"})
    following.look()
    kept, before = following.moment, content(following)
    cluster.snapshot(2, {"a": b"2"})
    following.look()
    assert kept is not None
    assert dict(kept.state.slots[0]["account"].entries()) == before[0]["account"] == {"a": b"1"}


def test_a_store_that_is_away() -> None:
    cluster = Cluster()
    store = Away(cluster.store)
    store.away = True
    following = follower(store)
    assert not following.look()
    assert following.moment is None
    assert following.trouble == "the store cannot be read: nobody answers"
    store.away = False
    assert not following.look()
    assert "no snapshot yet" in (following.trouble or "")
    cluster.snapshot(1, {"a": b"1"})
    assert following.look()
    store.away = True
    assert not following.look()
    assert following.moment is not None
    assert following.trouble is not None


@pytest.mark.parametrize("gone", [True, False])
def test_a_snapshot_that_cannot_be_read_is_passed_over(gone: bool) -> None:
    cluster, clock = Cluster(), Clock()
    store = Away(cluster.store)
    following = follower(store, clock)
    cluster.snapshot(1, {"a": b"1"})
    following.look()
    manifest = cluster.snapshot(2, {"a": b"2"})
    name = manifest.slots[0].objects[-1].name
    data = cluster.store.get(name)
    if gone:
        cluster.store.delete(name)
    else:
        cluster.store.put(name, flipped(data, len(data) - 1))
    assert not following.look()
    assert following.moment is not None
    assert following.moment.state.epoch == 1
    assert "the snapshot of epoch 2 cannot be read" in (following.trouble or "")
    store.read.clear()
    assert not following.look()
    assert store.read == []  # a damaged one is not read again at once
    assert following.trouble is not None
    clock.now += AGAIN_SECONDS
    cluster.store.put(name, data)
    assert following.look()
    assert following.moment.state.epoch == 2
    assert following.trouble is None


def test_the_newest_is_damaged_and_the_one_before_it_is_taken() -> None:
    cluster = Cluster()
    following = follower(cluster.store)
    cluster.snapshot(1, {"a": b"1"})
    cluster.snapshot(2, {"a": b"2"})
    newest = cluster.store.list("manifests/")[-1]
    cluster.store.put(newest, flipped(cluster.store.get(newest), 20))
    assert following.look()
    assert following.moment is not None
    assert following.moment.state.epoch == 1
    assert "its manifest is damaged" in (following.trouble or "")
    cluster.snapshot(3, {"a": b"3"})
    assert following.look()
    assert (following.moment.state.epoch, following.trouble) == (3, None)
    assert content(following) == loaded(cluster)


def test_a_newer_generation_counts_whatever_its_epoch() -> None:
    cluster = Cluster()
    following = follower(cluster.store)
    cluster.snapshot(8, {"a": b"void", "b": b"void"}, generation=4)
    following.look()
    cluster.chains = {slot: [] for slot in range(SLOTS)}
    cluster.snapshot(5, {"a": b"true"}, whole=True, generation=6)
    assert following.look()
    assert following.moment is not None
    assert following.moment.state.epoch == 5
    assert content(following)[0]["account"] == {"a": b"true"}


def test_an_older_one_is_taken_if_what_is_held_is_not_wanted() -> None:
    """As when the newest is of a generation that was void, and a later one has begun on the one before it."""
    cluster = Cluster()
    following = follower(cluster.store)
    cluster.snapshot(5, {"a": b"true"}, generation=4)
    true = loaded(cluster)
    cluster.snapshot(8, {"a": b"void", "b": b"void"}, generation=5)
    assert following.look()
    assert following.look(lambda *mark: mark == (4, 5))
    assert following.moment is not None
    assert following.moment.state.epoch == 5
    assert content(following) == true
    assert not following.look(lambda *mark: mark == (4, 5))


def test_the_schema_is_that_of_the_version() -> None:
    cluster = Cluster()
    made: list[Schema] = []

    def schema_of(description: AppDescription) -> Schema:
        made.append(of_description(description))
        return made[-1]

    following = Follower(lambda: Place(cluster.store, described), schema_of, LARGE)
    manifest = cluster.snapshot(1, {"a": b"1"})
    following.look()
    assert following.moment is not None
    assert len(following.moment.relations) == manifest.app_version == 3
    cluster.version = 4
    cluster.snapshot(2, {"a": b"2"})
    cluster.snapshot(3, {"a": b"2"})
    following.look()
    assert [len(each.datasets) for each in made] == [3, 4]
    assert len(following.moment.relations) == 4


def test_a_state_beyond_its_memory_is_refused_before_it_is_read() -> None:
    cluster = Cluster()
    store = Away(cluster.store)
    following = follower(store, bytes_max=2 * 2**20)
    cluster.snapshot(1, {"a": b"1"})
    assert following.look()
    cluster.snapshot(2, {"a": bytes(2**20)})
    store.read.clear()
    assert not following.look()
    assert following.moment is not None
    assert following.moment.state.epoch == 1
    assert following.trouble == "the state of epoch 2 takes 7 MiB, and --memory allows 2"
    assert [name.rpartition("/")[0] for name in store.read] == ["manifests"]


def test_replies_and_agendas_are_not_kept() -> None:
    assert is_shown("cart")
    assert is_shown("cart/items")
    assert is_shown("cart/<view dear>")
    assert not is_shown("\0idempotency")
    assert not is_shown("cart/<agenda>")
    assert not is_shown("cart/<sequences>")


def test_a_store_without_a_cluster_says_so() -> None:
    from styx.query.source import place_of_cluster

    following = Follower(lambda: place_of_cluster(MemoryStore()), of_description, LARGE)
    assert not following.look()
    assert "no cluster has its data in this store" in (following.trouble or "")

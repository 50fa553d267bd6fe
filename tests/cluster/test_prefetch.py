"""Objects are fetched ahead of a load, within bounds, and errors reach whoever asks."""

from __future__ import annotations

import threading

import pytest

from styx.cluster.worker import prefetch
from styx.cluster.worker.prefetch import PrefetchingStore, objects_of
from styx.protocol import Manifest, ObjectRef, SlotManifest, SlotPart
from styx.store import MemoryStore
from styx.store.base import NotFound


class Counting(MemoryStore):
    """A store that notes what is fetched, and waits for `gate`."""

    def __init__(self, names: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.gate = threading.Event()
        for name in names:
            self.put(name, name.encode())

    def get(self, name: str) -> bytes:
        self.fetched.append(name)
        assert self.gate.wait(10)
        return super().get(name)


def refs(names: str, size: int = 1) -> list[ObjectRef]:
    return [ObjectRef(name, size, b"") for name in names]


def test_later_objects_are_on_their_way_while_the_first_is_waited_for() -> None:
    store = Counting("abc")
    with PrefetchingStore(store, refs("abc")) as ahead:
        store.gate.set()
        assert [ahead.get(name) for name in "abc"] == [b"a", b"b", b"c"]
    assert sorted(store.fetched) == ["a", "b", "c"], "each once"


def test_bytes_ahead_are_bounded_but_one_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "AHEAD_BYTES_MAX", 25)
    store = Counting("abcd")
    store.gate.set()
    with PrefetchingStore(store, refs("abcd", size=10)) as ahead:
        ahead._threads.submit(lambda: None).result()
        assert set(store.fetched) <= {"a", "b"}
        assert [ahead.get(name) for name in "abcd"] == [b"a", b"b", b"c", b"d"]
    store = Counting("a")
    store.gate.set()
    with PrefetchingStore(store, refs("a", size=1_000)) as ahead:
        assert ahead.get("a") == b"a"


def test_what_was_not_announced_and_what_is_missing() -> None:
    store = Counting("ab")
    store.gate.set()
    with PrefetchingStore(store, refs("x")) as ahead:
        assert ahead.get("b") == b"b"
        with pytest.raises(NotFound):
            ahead.get("x")


def test_objects_in_the_order_of_the_load() -> None:
    a, b, c = refs("abc")
    parts = [
        SlotManifest(SlotPart(slot, 0, [], 0, {}, None), objects) for slot, objects in enumerate([[a, b], [], [c]])
    ]
    manifest = Manifest(1, 1, 1, parts)
    assert objects_of(manifest, [2, 0]) == [c, a, b]
    assert objects_of(None, [0]) == []

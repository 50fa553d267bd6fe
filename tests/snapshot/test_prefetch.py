"""Objects are fetched ahead of a load, within bounds, and errors reach whoever asks."""

from __future__ import annotations

import threading

import pytest

from styx.snapshot import prefetch
from styx.snapshot.part import Span
from styx.snapshot.prefetch import PrefetchingStore
from styx.store import MemoryStore
from styx.store.base import NotFound
from styx.testing.patience import PATIENCE_SECONDS


class Counting(MemoryStore):
    """A store that notes what is fetched, and waits for `gate`."""

    def __init__(self, names: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.gate = threading.Event()
        for name in names:
            self.put(name, name.encode())

    def get_range(self, name: str, start: int, size: int) -> bytes:
        self.fetched.append(name)
        assert self.gate.wait(PATIENCE_SECONDS)
        return super().get_range(name, start, size)


def wanted(names: str, size: int = 1) -> list[Span]:
    return [Span(name, 0, size, []) for name in names]


def test_later_objects_are_on_their_way_while_the_first_is_waited_for() -> None:
    store = Counting("abc")
    with PrefetchingStore(store, wanted("abc")) as ahead:
        store.gate.set()
        assert [ahead.get_range(name, 0, 1) for name in "abc"] == [b"a", b"b", b"c"]
    assert sorted(store.fetched) == ["a", "b", "c"], "each once"


def test_bytes_ahead_are_bounded_but_one_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "AHEAD_BYTES_MAX", 25)
    store = Counting("abcd")
    store.gate.set()
    with PrefetchingStore(store, wanted("abcd", size=10)) as ahead:
        ahead._threads.submit(lambda: None).result()
        assert set(store.fetched) <= {"a", "b"}
        assert [ahead.get_range(name, 0, 1) for name in "abcd"] == [b"a", b"b", b"c", b"d"]
    store = Counting("a")
    store.gate.set()
    with PrefetchingStore(store, wanted("a", size=1_000)) as ahead:
        assert ahead.get_range("a", 0, 1) == b"a"


def test_what_was_not_announced_and_what_is_missing() -> None:
    store = Counting("ab")
    store.gate.set()
    with PrefetchingStore(store, wanted("x")) as ahead:
        assert ahead.get_range("b", 0, 1) == b"b"
        with pytest.raises(NotFound):
            ahead.get_range("x", 0, 1)

"""Versions of an app in the store: numbers that are given once, and which of them ran."""

from __future__ import annotations

from styx.deployment.versions import (
    load_published,
    load_version,
    load_version_before,
    note_running,
    store_version,
    versions,
)
from styx.store import MemoryStore


def test_numbers_begin_at_one_and_go_up() -> None:
    store = MemoryStore()
    assert [store_version(store, package) for package in (b"a", b"b", b"a")] == [1, 2, 3]
    assert versions(store) == [1, 2, 3]
    assert [load_version(store, number) for number in (1, 2, 3, 4)] == [b"a", b"b", b"a", None]


def test_a_version_that_never_ran_is_none_to_go_back_to() -> None:
    store = MemoryStore()
    for package in (b"first", b"no worker could run it", b"second"):
        store_version(store, package)
    assert load_version_before(store, 3) is None
    for number in (1, 3):
        note_running(store, number)
    assert load_version_before(store, 3) == b"first"
    assert load_version_before(store, 1) is None
    assert versions(store) == [1, 2, 3], "what ran is noted apart"


def test_what_was_published_is_that_of_the_last_note_that_says_so() -> None:
    store = MemoryStore()
    assert load_published(store, 9) == b""
    note_running(store, 1)
    assert load_published(store, 9) == b"", "the note of an older release"
    note_running(store, 2, b"two")
    note_running(store, 4)
    assert [load_published(store, number) for number in (1, 2, 3, 4, 9)] == [b"", b"two", b"two", b"two", b"two"]
    note_running(store, 7, b"seven")
    assert [load_published(store, number) for number in (6, 7)] == [b"two", b"seven"]

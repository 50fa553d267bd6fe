"""What every store does, wherever it keeps its objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from styx.store import DirectoryStore, MemoryStore, NotFound, Store


@pytest.fixture(params=["memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path / "store")


@pytest.mark.parametrize("data", [b"", b"abc", bytes(range(256)) * 1000])
def test_an_object_comes_back(store: Store, data: bytes) -> None:
    store.put("snapshots/7/slot-1", data)
    assert store.get("snapshots/7/slot-1") == data


def test_putting_again_replaces(store: Store) -> None:
    store.put("a", b"longer before")
    store.put("a", b"now")
    assert store.get("a") == b"now"
    assert store.list("") == ["a"]


def test_a_missing_object_is_named(store: Store) -> None:
    store.put("folder/a", b"")
    for name in ("b", "folder", "folder/b", "folder/a/b"):
        with pytest.raises(NotFound, match=repr(name)):
            store.get(name)


def test_listing_is_by_prefix_and_sorted(store: Store) -> None:
    names = ["b", "a/10", "a/9/x", "ab/1", "a/9/é", "a.b", "a-b"]
    for name in names:
        store.put(name, b"")
    assert store.list("") == sorted(names)
    assert store.list("a/") == ["a/10", "a/9/x", "a/9/é"]
    assert store.list("a/9/") == ["a/9/x", "a/9/é"]
    assert store.list("a/1") == ["a/10"]
    assert store.list("a") == ["a-b", "a.b", "a/10", "a/9/x", "a/9/é", "ab/1"]
    for prefix in ("c", "c/", "b/", "/", "../", "a//", "a/../", "/etc/", "a/\0/"):
        assert store.list(prefix) == []


def test_deleting_removes_one_object(store: Store) -> None:
    store.put("a/1", b"")
    store.put("a/2", b"")
    store.delete("a/1")
    assert store.list("") == ["a/2"]


def test_deleting_what_is_missing_is_fine(store: Store) -> None:
    store.put("a/1", b"")
    for name in ("b", "a", "a/2", "a/1/b", "b/c"):
        store.delete(name)
    assert store.list("") == ["a/1"]


def test_an_emptied_folder_can_be_used_again(store: Store) -> None:
    for _ in range(2):
        store.put("a/b/c", b"x")
        store.delete("a/b/c")
    store.put("a", b"y")
    assert store.get("a") == b"y"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../a",
        "a/../b",
        "a/./b",
        "a//b",
        "a/",
        ".hidden",
        "a\0b",
        "\ud800",
        "x" * 256,
        "x/" * 600 + "x",
    ],
)
def test_a_bad_name_is_refused_with_a_reason(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name an object: "):
        store.put(name, b"")
    with pytest.raises(ValueError, match="cannot name an object"):
        store.get(name)
    with pytest.raises(ValueError, match="cannot name an object"):
        store.delete(name)

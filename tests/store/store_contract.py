"""What every store does, wherever it keeps its objects: a class of tests to be given the fixture `store`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from styx.store import NotFound, Store

ODD_NAMES = [
    " ",
    "a+b %41%",
    "?x=y&z#",
    "\\back\\",
    "tab\tline\nbell\a",
    "é ü 😀",
    "<&>\"'`",
    "~(*)!|^{}[]:;,@$",
    "dots..",
    "x" * 255,
]


class StoreContract:
    @pytest.mark.parametrize("data", [b"", b"abc", bytes(range(256)) * 1000])
    def test_an_object_comes_back(self, store: Store, data: bytes) -> None:
        store.put("snapshots/7/slot-1", data)
        assert store.get("snapshots/7/slot-1") == data

    def test_putting_again_replaces(self, store: Store) -> None:
        store.put("a", b"longer before")
        store.put("a", b"now")
        assert store.get("a") == b"now"
        assert store.list("") == ["a"]

    def test_a_missing_object_is_named(self, store: Store) -> None:
        store.put("folder/a", b"")
        for name in ("b", "folder", "folder/b", "folder/a/b"):
            with pytest.raises(NotFound, match=repr(name)):
                store.get(name)

    @pytest.mark.parametrize(("start", "size"), [(0, 10), (0, 3), (4, 2), (9, 1), (9, 5), (10, 1), (11, 4), (3, 0)])
    def test_a_part_of_an_object(self, store: Store, start: int, size: int) -> None:
        store.put("folder/a", b"0123456789")
        assert store.get_range("folder/a", start, size) == b"0123456789"[start : start + size]
        for name in ("b", "folder", "folder/b", "folder/a/b"):
            with pytest.raises(NotFound, match=repr(name)):
                store.get_range(name, start, size)

    def test_listing_is_by_prefix_and_sorted(self, store: Store) -> None:
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

    def test_deleting_removes_one_object(self, store: Store) -> None:
        store.put("a/1", b"")
        store.put("a/2", b"")
        store.delete("a/1")
        assert store.list("") == ["a/2"]

    def test_deleting_what_is_missing_is_fine(self, store: Store) -> None:
        store.put("a/1", b"")
        for name in ("b", "a", "a/2", "a/1/b", "b/c"):
            store.delete(name)
        assert store.list("") == ["a/1"]

    def test_an_emptied_folder_can_be_used_again(self, store: Store) -> None:
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
    def test_a_bad_name_is_refused_with_a_reason(self, store: Store, name: str) -> None:
        with pytest.raises(ValueError, match="cannot name an object: "):
            store.put(name, b"")
        with pytest.raises(ValueError, match="cannot name an object"):
            store.get(name)
        with pytest.raises(ValueError, match="cannot name an object"):
            store.delete(name)
        with pytest.raises(ValueError, match="cannot name an object"):
            store.put_new(name, b"")

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_an_odd_name_is_a_name(self, store: Store, name: str) -> None:
        store.put(f"a/{name}/b", name.encode())
        assert store.get(f"a/{name}/b") == name.encode()
        assert store.list(f"a/{name}") == [f"a/{name}/b"]
        assert not store.put_new(f"a/{name}/b", b"")
        store.delete(f"a/{name}/b")
        assert store.list("") == []

    def test_of_two_new_objects_of_one_name_the_first_stays(self, store: Store) -> None:
        assert store.put_new("a/b", b"first")
        assert not store.put_new("a/b", b"second")
        assert store.get("a/b") == b"first"

    def test_what_put_has_stored_is_not_new(self, store: Store) -> None:
        store.put("a", b"first")
        assert not store.put_new("a", b"second")
        assert store.get("a") == b"first"
        store.put("a", b"third")
        assert store.get("a") == b"third"

    def test_a_repeated_put_new_of_the_same_content_is_told_that_it_is_stored(self, store: Store) -> None:
        assert store.put_new("a", b"same")
        assert store.put_new("a", b"same")

    def test_a_deleted_object_is_new_again(self, store: Store) -> None:
        store.put_new("a/b", b"first")
        store.delete("a/b")
        assert store.put_new("a/b", b"second")

    def test_of_many_threads_that_store_one_name_at_once_one_is_told_that_it_did(self, store: Store) -> None:
        contents = [b"by %d" % thread for thread in range(8)]
        with ThreadPoolExecutor(len(contents)) as threads:
            for turn in range(20):
                start = Barrier(len(contents))

                def claim(content: bytes, name: str = f"claims/{turn}", start: Barrier = start) -> bool:
                    start.wait()
                    return store.put_new(name, content)

                told = list(threads.map(claim, contents))
                assert told.count(True) == 1
                assert store.get(f"claims/{turn}") == contents[told.index(True)]

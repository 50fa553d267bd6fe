"""The directory store and the disk: what a crash leaves, what is synced and when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from styx.store import DirectoryStore


def test_objects_survive_reopening(tmp_path: Path) -> None:
    DirectoryStore(tmp_path / "deep" / "store").put("a/b", b"x")
    assert DirectoryStore(tmp_path / "deep" / "store").get("a/b") == b"x"


def test_leftovers_of_a_crash_are_no_objects_and_go_at_opening(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    leftover = tmp_path / ".unfinished" / "0"
    leftover.write_bytes(b"half an obj")
    assert store.list("") == []
    DirectoryStore(tmp_path)
    assert not leftover.exists()


def test_a_failed_put_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectoryStore(tmp_path)
    store.put("a", b"old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("styx.store.directory.fsync_file", fail)
    with pytest.raises(OSError, match="No space left"):
        store.put("a", b"new")
    assert store.get("a") == b"old"
    assert list((tmp_path / ".unfinished").iterdir()) == []


def test_a_put_syncs_the_content_before_and_the_directories_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectoryStore(tmp_path)
    steps: list[str] = []
    replace = os.replace

    def rename(source: Path, target: Path) -> None:
        replace(source, target)
        steps.append("rename")

    monkeypatch.setattr("styx.store.directory.fsync_file", lambda descriptor: steps.append("content"))
    monkeypatch.setattr(
        "styx.store.directory.fsync_directory", lambda path: steps.append(path.relative_to(tmp_path).as_posix())
    )
    monkeypatch.setattr(os, "replace", rename)
    store.put("a/b/c", b"")
    assert steps == ["content", ".", "a", "rename", "a/b"]
    steps.clear()
    store.put("a/b/d", b"")
    assert steps == ["content", "rename", "a/b"]


def test_a_directory_left_by_a_crash_is_synced_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    store = DirectoryStore(tmp_path)
    synced: list[Path] = []
    monkeypatch.setattr("styx.store.directory.fsync_directory", synced.append)
    store.put("a/b", b"")
    assert synced == [tmp_path, tmp_path / "a"]


def test_emptied_folders_are_removed(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.put("a/b/c", b"")
    store.put("a/d", b"")
    store.delete("a/b/c")
    assert not (tmp_path / "a" / "b").exists()
    store.delete("a/d")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".unfinished"]


@pytest.mark.parametrize(("first", "second"), [("a", "a/b"), ("a/b", "a"), ("a", "a/b/c")])
def test_a_name_that_continues_another_is_refused(tmp_path: Path, first: str, second: str) -> None:
    store = DirectoryStore(tmp_path)
    store.put(first, b"x")
    with pytest.raises(ValueError, match="whose name it continues"):
        store.put(second, b"y")
    assert store.list("") == [first]


def test_two_stores_may_share_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = DirectoryStore(tmp_path)
    sync = os.fsync

    def open_another(descriptor: int) -> None:
        monkeypatch.setattr("styx.store.directory.fsync_file", sync)
        # In the middle of the put. What is being written is no leftover.
        assert DirectoryStore(tmp_path).put_new("a/b", b"other")

    monkeypatch.setattr("styx.store.directory.fsync_file", open_another)
    one.put("a/c", b"one")
    assert one.list("") == ["a/b", "a/c"]


def test_a_folder_that_another_store_removed_is_made_again(tmp_path: Path) -> None:
    one, other = DirectoryStore(tmp_path), DirectoryStore(tmp_path)
    for put in (one.put, one.put_new):
        one.put("a/b/c", b"1")
        other.delete("a/b/c")
        assert not (tmp_path / "a").exists()
        put("a/b/c", b"2")
        assert other.get("a/b/c") == b"2"


def test_put_new_syncs_also_what_another_has_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DirectoryStore(tmp_path).put("a/b", b"x")
    store = DirectoryStore(tmp_path)
    synced: list[Path] = []
    monkeypatch.setattr("styx.store.directory.fsync_directory", synced.append)
    assert store.put_new("a/b", b"x")
    assert synced == [tmp_path, tmp_path / "a"]


@pytest.mark.parametrize(("first", "second"), [("a", "a/b"), ("a/b", "a"), ("a", "a/b/c")])
def test_a_new_name_that_continues_another_is_refused(tmp_path: Path, first: str, second: str) -> None:
    store = DirectoryStore(tmp_path)
    store.put(first, b"x")
    with pytest.raises(ValueError, match="whose name it continues"):
        store.put_new(second, b"y")
    assert store.list("") == [first]

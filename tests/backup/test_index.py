"""A backup's index comes back as it was, and any change to it is noticed."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from styx.backup.index import Damaged, Index, backup_name, decode_index, encode_index, entry_of, is_whole
from tests.backup.snapshots import flipped

INDEX = Index(
    styx="1.2",
    app="bank",
    taken_at="2026-01-02T03:04:05+00:00",
    generation=4,
    epoch=41,
    app_version=3,
    manifest="manifests/x",
    objects=[entry_of("a", b"12"), entry_of("b", b"")],
)


def test_it_comes_back() -> None:
    assert decode_index("x", encode_index(INDEX)) == INDEX
    assert INDEX.size == 2


def test_any_change_is_noticed() -> None:
    data = encode_index(INDEX)
    for position in range(len(data) - 1):
        with pytest.raises(Damaged, match="the index of backup x is damaged"):
            decode_index("x", flipped(data, position))
    for cut in range(len(data) - 1):
        with pytest.raises(Damaged):
            decode_index("x", data[:cut])


def test_another_version_says_which() -> None:
    with pytest.raises(Damaged, match=r"has format 2, .* restore it with styx 1\.2"):
        decode_index("x", encode_index(msgspec.structs.replace(INDEX, format=2)))


def test_an_entry_knows_its_object() -> None:
    assert is_whole(entry_of("a", b"12"), b"12")
    assert not is_whole(entry_of("a", b"12"), b"13")
    assert not is_whole(entry_of("a", b"12"), b"123")


def test_names_sort_by_time() -> None:
    times = [datetime(2026, 1, 2, 3, 4, 5, micros, UTC) for micros in (0, 1_000, 999_000)]
    assert [backup_name(each) for each in times] == sorted(backup_name(each) for each in times)
    assert backup_name(times[1]) == "20260102T030405.001Z"

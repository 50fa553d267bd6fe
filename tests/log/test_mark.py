"""The mark keeps the highest acknowledged LSN through torn and lost writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from styx.log.mark import Mark


def reopened(path: Path) -> int:
    mark = Mark(path)
    mark.close(sync=False)
    return mark.lsn


def marked(path: Path, *lsns: int) -> bytes:
    mark = Mark(path)
    for lsn in lsns:
        mark.advance(lsn)
    mark.close(sync=True)
    return path.read_bytes()


def test_a_new_mark_is_zero(tmp_path: Path) -> None:
    assert reopened(tmp_path / "m") == 0


@pytest.mark.parametrize("lsns", [(1,), (1, 2), (1, 2, 3), (5, 2**63)])
def test_the_last_advance_counts(tmp_path: Path, lsns: tuple[int, ...]) -> None:
    marked(tmp_path / "m", *lsns)
    assert reopened(tmp_path / "m") == lsns[-1]


def test_advances_go_on_after_reopening(tmp_path: Path) -> None:
    for lsn in range(1, 8):
        marked(tmp_path / "m", lsn)
        assert reopened(tmp_path / "m") == lsn


def test_a_torn_write_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "m"
    before = marked(path, 1, 300)
    after = marked(path, 70000)
    changed = [
        position for position in range(len(after)) if after[position : position + 1] != before[position : position + 1]
    ]
    for torn_at in changed:
        path.write_bytes(after[:torn_at] + before[torn_at:])
        assert reopened(path) == 300


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"\xff" * 5000, b"abc"])
def test_a_mark_lost_in_a_power_cut_is_as_good_as_missing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    assert reopened(tmp_path / "m") == 0

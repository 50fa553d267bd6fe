"""The benchmark of many rows, with few."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.micro.many_rows import TABLES, load_by_client, make, start


@pytest.mark.parametrize("name", TABLES)
def test_a_snapshot_of_the_rows_is_a_start(name: str, tmp_path: Path) -> None:
    committed, _, size, manifest = make(name, 500, str(tmp_path))
    assert committed.seconds > 0
    assert size > 500 * 4
    assert start(name, str(tmp_path), manifest, True)[0].seconds > 0


def test_a_client_loads_rows_with_two_indexes(tmp_path: Path) -> None:
    assert load_by_client("two indexes", 300, str(tmp_path)) > 0

"""The benchmark of rows in an engine with a directory, with few; and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.micro import stored_rows
from benchmarks.micro.many_rows import items
from benchmarks.micro.stored_rows import MB, load, more_items, start

PLENTY = 10**6 * MB


def test_rows_are_loaded_and_are_there_after_an_orderly_end_and_after_a_crash(tmp_path: Path) -> None:
    done = load("two indexes", 500, str(tmp_path), PLENTY)
    assert min(done.loaded_s, done.processor_s, done.last_snapshot_s) > 0
    assert done.snapshots >= 1
    assert done.snapshot_bytes > 500 * 4
    assert done.log_bytes > 0
    orderly = start("two indexes", 500, str(tmp_path), PLENTY, later=20)
    assert (orderly.replayed, orderly.rows) == (0, 500)
    crashed = start("two indexes", 520, str(tmp_path), PLENTY)
    assert crashed.replayed > 0


def test_rows_that_are_not_there_end_it(tmp_path: Path) -> None:
    load("no index", 200, str(tmp_path), PLENTY)
    with pytest.raises(SystemExit, match="200 of 201 rows are there"):
        start("no index", 201, str(tmp_path), PLENTY)


def test_more_rows_are_new_ones_of_the_same_entities() -> None:
    there, more = list(items(1_000)), list(more_items(1_000, 30))
    assert {entity for entity, _ in more} <= {entity for entity, _ in there}
    assert len({item.product for _, item in there + more}) == 1_030


@pytest.mark.slow
def test_a_process_that_takes_too_much_memory_ends(tmp_path: Path) -> None:
    code = (
        "from benchmarks.micro import stored_rows\n"
        "stored_rows.WATCH_SECONDS = 0.0\n"
        f"stored_rows.load('no index', 100_000, {str(tmp_path)!r}, 1)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "more than 0 MB of memory: ended\n"


def test_the_command_tells_of_load_and_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stored_rows, "alone", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(sys, "argv", ["stored_rows", "--rows", "300"])
    stored_rows.main()
    told = capsys.readouterr().out.splitlines()
    assert told[0].endswith("300 rows in 3 entities, two indexes")
    starts = [line.partition(":")[0] for line in told[1:]]
    assert starts == [
        "load",
        "memory",
        "snapshots",
        "start after an orderly end",
        "start after a crash behind 3 more rows",
    ]

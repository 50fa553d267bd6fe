"""One engine at a time holds a data directory, and a dead one holds nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from styx.embedded_engine.storage import DataDirectory, DataDirectoryInUse

HOLDER = """
import sys
from styx.embedded_engine.storage import DataDirectory
held = DataDirectory(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_it_is_created_with_its_parents(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "a" / "b") as directory:
        assert directory.path.is_dir()


def test_a_second_opening_in_one_process_is_refused(tmp_path: Path) -> None:
    with DataDirectory(tmp_path):
        with pytest.raises(DataDirectoryInUse, match="Close the other client of this directory first") as caught:
            DataDirectory(tmp_path)
        assert caught.value.pid == os.getpid()


def test_it_is_free_after_release_and_release_repeats(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path)
    first.release()
    with DataDirectory(tmp_path):
        first.release()
        with pytest.raises(DataDirectoryInUse):
            DataDirectory(tmp_path)


def test_a_stale_lock_file_means_nothing(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("999999 and something longer than a pid")
    DataDirectory(tmp_path).release()
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_holder_of_unknown_pid_is_still_respected(tmp_path: Path) -> None:
    with DataDirectory(tmp_path):
        (tmp_path / "lock").write_text("")
        with pytest.raises(DataDirectoryInUse, match="in use by another process") as caught:
            DataDirectory(tmp_path)
        assert caught.value.pid is None


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        DataDirectory(tmp_path / "file")


@pytest.mark.slow
def test_another_process_holds_it_until_it_dies(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(DataDirectoryInUse, match=f"process {child.pid}. Stop that process"):
            DataDirectory(tmp_path)
        child.kill()
    DataDirectory(tmp_path).release()

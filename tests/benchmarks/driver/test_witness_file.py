"""What was written is read again, and what is no witness of a run of this workload is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.witness_file import read_witnesses, write_witnesses
from styx.errors import ConfigurationError


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_witnesses(tmp_path / "w", "bank", [{"seen": [1]}, {"seen": []}])
    assert read_witnesses(tmp_path / "w", "bank") == [{"seen": [1]}, {"seen": []}]


def test_the_witness_of_another_workload_is_refused(tmp_path: Path) -> None:
    write_witnesses(tmp_path / "w", "bank", [])
    with pytest.raises(ConfigurationError, match="is of a run of bank, not of cinema"):
        read_witnesses(tmp_path / "w", "cinema")


@pytest.mark.parametrize("content", [b"", b"text", b"\x90", b"\xa1\xff", b"\x81\xa1\xff\x01"])
def test_any_other_file_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(ConfigurationError, match="is not what `run --witness` writes"):
        read_witnesses(tmp_path / "w", "bank")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        read_witnesses(tmp_path / "w", "bank")

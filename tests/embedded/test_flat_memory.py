"""A soak of a million transactions with one per cent aborts ends with flat memory and a bounded data directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TRANSACTIONS = int(os.environ.get("STYX_SOAK_TRANSACTIONS", "1000000"))
GROWTH_BYTES_MAX = 16 * 1024 * 1024
"""From a fifth of the way to the end: one leaked 100-byte object a transaction would be five times as much."""
DIRECTORY_BYTES_MAX = 256 * 1024 * 1024


@pytest.mark.slow
def test_a_million_transactions(tmp_path: Path) -> None:
    script = Path(__file__).with_name("million.py")
    run = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "data"), str(TRANSACTIONS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    lines = [tuple(map(int, line.split())) for line in run.stdout.splitlines()]
    print(f"{TRANSACTIONS} transactions: resident MiB", *(f"{resident >> 20}" for _, resident, _ in lines))
    assert len(lines) == 10
    assert lines[-1][1] - lines[1][1] < GROWTH_BYTES_MAX
    assert all(size < DIRECTORY_BYTES_MAX for _, _, size in lines)

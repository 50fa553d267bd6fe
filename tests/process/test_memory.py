"""The allocator's settings, each in a process of its own, since they are the whole process's."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from styx.process.memory import OWN_SETTINGS

# Beyond the threshold that glibc would have raised, small blocks keep the heap's end where it is.
SCRIPT = """
from pathlib import Path
from styx.process.memory import return_large_blocks

def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

print(return_large_blocks())
bytes(bytearray(20_000_000))
before = resident()
large, small = [], []
for number in range(100):
    large.append(b"x" * (1_000_000 + number))
    small.append(b"x" * 1_000)
large.clear()
print(resident() - before)
"""


@pytest.mark.parametrize("own", [None, *OWN_SETTINGS])
def test_large_blocks_come_back_unless_the_owner_has_said_otherwise(own: str | None) -> None:
    if not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"):
        pytest.skip("glibc alone")
    environment = {name: value for name, value in os.environ.items() if name not in OWN_SETTINGS}
    if own is not None:
        environment[own] = "glibc.malloc.check=0" if own == "GLIBC_TUNABLES" else "33554432"
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    done, kept_bytes = run.stdout.split()
    assert done == str(own is None)
    if own is None:
        assert int(kept_bytes) < 10_000_000

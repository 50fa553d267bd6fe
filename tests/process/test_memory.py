"""The allocator's settings, each in a process of its own, since they are the whole process's. The memory limit that a
process shows is the lowest of its control groups, in both versions that Linux has.
"""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from styx.process.memory import OWN_SETTINGS, memory_limit_bytes

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


MIB = 1024 * 1024


def limit(directory: Path, own: str, files: dict[str, str]) -> float:
    cgroups, me = directory / "cgroup", directory / "own"
    me.write_text(own, "ascii")
    for name, text in files.items():
        (cgroups / name).parent.mkdir(parents=True, exist_ok=True)
        (cgroups / name).write_text(text, "ascii")
    return memory_limit_bytes(cgroups, me)


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"memory.max": f"{512 * MIB}\n"}, 512 * MIB),
        ("0::/\n", {"memory.max": "max\n"}, math.inf),
        ("0::/\n", {}, math.inf),
        ("0::/a/b\n", {"a/memory.max": f"{MIB}\n", "a/b/memory.max": f"{2 * MIB}\n"}, MIB),
        ("0::/a/b\n", {"a/memory.max": "max\n", "a/b/memory.max": f"{2 * MIB}\n"}, 2 * MIB),
        ("0::/../pod\n", {"memory.max": f"{MIB}\n"}, MIB),
        ("5:memory:/pod\n4:cpu,cpuacct:/pod\n", {"memory/memory.limit_in_bytes": f"{MIB}\n"}, MIB),
        ("5:cpu,memory:/pod\n0::/\n", {"memory/pod/memory.limit_in_bytes": f"{MIB}\n"}, MIB),
        ("5:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, math.inf),
        ("5:cpu:/\n", {"memory/memory.limit_in_bytes": f"{MIB}\n", "memory.max": f"{MIB}\n"}, math.inf),
    ],
)
def test_the_lowest_limit_counts(tmp_path: Path, own: str, files: dict[str, str], expected: float) -> None:
    assert limit(tmp_path, own, files) == expected


def test_a_system_without_control_groups_has_no_limit(tmp_path: Path) -> None:
    assert memory_limit_bytes(tmp_path, tmp_path / "missing") == math.inf

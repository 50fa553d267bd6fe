"""The memory limit that a process shows is the lowest of its control groups, in both versions that Linux has."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from styx.metrics.memory_limit import memory_limit_bytes

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

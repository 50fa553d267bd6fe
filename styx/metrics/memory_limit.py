"""The memory limit of this process: that of its control group (Linux), such as a container's.

Above the limit the kernel kills the process, so the limit is shown beside the memory in use.
"""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
OWN: Final = Path("/proc/self/cgroup")
UNLIMITED_MIN: Final = 2**60
"""The first version of control groups writes a number so large where there is no limit."""


def memory_limit_bytes(cgroups: Path = CGROUPS, own: Path = OWN) -> float:
    """The lowest limit of the process's control group and those above it; infinite if there is none."""
    try:
        lines = own.read_text("ascii").splitlines()
    except (OSError, UnicodeError):
        return math.inf
    return min((_lowest(cgroups, line) for line in lines), default=math.inf)


def _lowest(cgroups: Path, line: str) -> float:
    _, controllers, path = line.split(":", 2)
    if not controllers:
        root, file = cgroups, "memory.max"
    elif "memory" in controllers.split(","):
        root, file = cgroups / "memory", "memory.limit_in_bytes"
    else:
        return math.inf
    group = PurePosixPath(path)
    # Seen from inside of a container the own group may stand at the root, whatever it is called outside.
    return min(_limit(root / each.relative_to("/") / file) for each in (group, *group.parents))


def _limit(file: Path) -> float:
    try:
        limit = int(file.read_text("ascii"))
    except (OSError, ValueError):
        return math.inf
    return limit if limit < UNLIMITED_MIN else math.inf

"""The memory of a process that exists to run the engine: large values' memory returns to the system, and the garbage
collector stays out of the hot path. And the memory limit of any process.

The settings change the whole process, so only the process's owner makes them: `styx dev`, the processes of a cluster,
benchmarks. `styx.embedded` must never make them, because it is a guest in somebody's process.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
from pathlib import Path, PurePosixPath
from typing import Final

LARGE_BYTES: Final = 256 * 1024
"""A block of this size or more is a mapping of its own, and goes back to the system when it is freed."""
HEAP_END_BYTES: Final = 32 * 1024 * 1024
"""So much may be free at a heap's end before it goes back: less would come and go with each epoch."""
OWN_SETTINGS: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")
"""Variables by which a process's owner sets the allocator: then it is left as it is."""
YOUNG_OBJECTS_MAX: Final = 100_000
"""Container objects made, less those freed, before a young collection: more than an epoch of 1,000 transactions
holds.
"""
YOUNG_COLLECTIONS: Final = 50
OLD_COLLECTIONS: Final = 1_000
CGROUPS: Final = Path("/sys/fs/cgroup")
OWN: Final = Path("/proc/self/cgroup")
UNLIMITED_MIN: Final = 2**60
"""The first version of control groups writes a number so large where there is no limit."""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3


def return_large_blocks() -> bool:
    """Has glibc return the memory of large blocks; returns whether it was done: by glibc alone, and not if the
    environment has settings of its own.

    By default glibc takes large blocks from its heaps once it has seen a few of them, and a block that outlives its
    neighbours keeps hundreds of mebibytes of their memory.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version") or any(name in os.environ for name in OWN_SETTINGS):
        return False
    wanted = ((_MMAP_THRESHOLD, LARGE_BYTES), (_TRIM_THRESHOLD, HEAP_END_BYTES))
    return all(library.mallopt(name, value) == 1 for name, value in wanted)


def tune_collector() -> None:
    """Collects once, exempts everything that lives now (code, the app, recovered state), and makes collections rare.

    The engine frees what an epoch made when the epoch ends, without leaving reference cycles. The collector finds
    nothing there, and costs a seventh of the processor at its default thresholds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, YOUNG_COLLECTIONS, OLD_COLLECTIONS)


def memory_limit_bytes(cgroups: Path = CGROUPS, own: Path = OWN) -> float:
    """The lowest limit of the process's control group (Linux), such as a container's, and those above it; infinite if
    there is none. The kernel kills a process above it.
    """
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

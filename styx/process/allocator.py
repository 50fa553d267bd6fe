"""The C library's memory allocator in a process that exists to run the engine: memory of large values returns to the
system.

By default glibc takes large blocks from its heaps once it has seen a few of them, and a block that outlives its
neighbours keeps hundreds of mebibytes of their memory. The settings change the whole process, so only the process's
owner calls this: `styx dev`, and the processes of a cluster. `styx.embedded` must never call it, because it is a guest
in somebody's process.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

LARGE_BYTES: Final = 256 * 1024
"""A block of this size or more is a mapping of its own, and goes back to the system when it is freed."""
HEAP_END_BYTES: Final = 32 * 1024 * 1024
"""So much may be free at a heap's end before it goes back: less would come and go with each epoch."""
OWN_SETTINGS: Final = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")
"""Variables by which a process's owner sets the allocator: then it is left as it is."""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3


def return_large_blocks() -> bool:
    """Whether it was done: by glibc alone, and not if the environment has settings of its own."""
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version") or any(name in os.environ for name in OWN_SETTINGS):
        return False
    wanted = ((_MMAP_THRESHOLD, LARGE_BYTES), (_TRIM_THRESHOLD, HEAP_END_BYTES))
    return all(library.mallopt(name, value) == 1 for name, value in wanted)

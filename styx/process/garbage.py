"""The garbage collector in a process that exists to run the engine: out of the hot path.

The engine frees what an epoch made when the epoch ends, without leaving reference cycles; the collector finds nothing
there and costs a seventh of the processor at its default thresholds. The settings change the whole process, so only the
process's owner calls this: `styx dev`, workers, benchmarks. `styx.embedded` must never call it, because it is a guest
in somebody's process.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG_OBJECTS_MAX: Final = 100_000
"""Container objects made, less those freed, before a young collection: more than an epoch of 1,000 transactions
holds.
"""
YOUNG_COLLECTIONS: Final = 50
OLD_COLLECTIONS: Final = 1_000


def tune_collector() -> None:
    """Collects once, exempts everything that lives now (code, the app, recovered state), and makes collections rare."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, YOUNG_COLLECTIONS, OLD_COLLECTIONS)

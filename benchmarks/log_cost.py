"""The processor time that the log's writer takes for a call, by itself: `python -m benchmarks.log_cost`.

It writes epochs of 32 calls over the slots into a new log, in one thread, and counts what the writer does. The replies
of an epoch have a commit of their own. With `--bundled 0` records stand in batches by partition at once.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Final

from styx.embedded_engine.options import N_SLOTS_DEFAULT
from styx.log.base import Stream
from styx.log.mark import Mark
from styx.log.sqlite import BUNDLED_BYTES_MAX, Writer
from styx.log.sqlite_file import SqliteFile
from styx.log.tail import Group, LogTail

CALLS: Final = 32
REQUEST: Final = bytes(90)
REPLY: Final = bytes(45)
RECORD: Final = bytes(120)


def measured(directory: Path, epochs: int, slots_count: int, bundled_bytes_max: int) -> float:
    """Microseconds of processor time a call."""
    file, mark, tail = SqliteFile(directory / "log.db", 0), Mark(directory / "log.mark"), LogTail(10**9, 10**12)
    writer = Writer(
        file, mark, committed=tail.committed, reported=lambda: None, failed=print, bundled_bytes_max=bundled_bytes_max
    )
    places, spent_s = random.Random(1), 0.0
    for _ in range(epochs):
        slots = [places.randrange(slots_count) for _ in range(CALLS)]
        for slot in slots:
            tail.append(Stream.REQUESTS, slot, 1, REQUEST)
        tail.append(Stream.EPOCHS, 0, 1, RECORD)
        first = tail.take()
        for slot in slots:
            tail.append(Stream.REPLIES, slot, 1, REPLY)
        for group in (first, tail.take()):
            if isinstance(group, Group):
                began_s = time.thread_time()
                writer._commit([group])
                spent_s += time.thread_time() - began_s
    file.close()
    mark.close(sync=False)
    return spent_s / epochs / CALLS * 1e6


def main() -> None:
    """Prints one line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=600)
    parser.add_argument("--slots", type=int, default=N_SLOTS_DEFAULT)
    parser.add_argument("--bundled", type=int, default=BUNDLED_BYTES_MAX, help="bytes in bundles", metavar="BYTES")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as directory:
        took_us = measured(Path(directory), options.epochs, options.slots, options.bundled)
    print(f"{took_us:.1f} µs of processor a call in the log's writer")


if __name__ == "__main__":
    main()

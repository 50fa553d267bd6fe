"""`python -m benchmarks.micro.stored_rows [--rows N]`: many rows in one process, as an app would have them: loaded by a
client into an engine that keeps its log and its snapshots in a directory, and started again from there.

Measured are the load with its snapshots, what a small request waits meanwhile, the directory, a start after an orderly
end, and a start after a crash behind which a hundredth of the rows is only in the log. Each process says how many rows
it holds, which must be all. `many_rows` measures the parts without an engine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.micro.many_rows import ROWS_EACH, TABLES, Item, alone, app, cart, cheapest, items, memory
from styx.client.embedded import EmbeddedClient, embedded
from styx.native.form import FORM, describe

MB: Final = 1_000_000
SNAPSHOT_SECONDS_MAX: Final = 3_600.0
"""The longest that a snapshot may take; and an interval in which none is taken."""
PAUSE_SECONDS: Final = 0.05
"""Between the small requests that are sent during the load."""
WATCH_SECONDS: Final = 0.5
"""Between two looks at the memory of a process."""
LATER_SHARE: Final = 0.01
"""Of the rows: how many more are loaded before the crash."""


class Load(NamedTuple):
    """Of the process that loads the rows. Times in seconds of the clock, but for `processor_s`; memory and sizes in
    bytes. `waited_s`: the longest that a small request has waited, of `asked` ones.
    """

    loaded_s: float
    processor_s: float
    snapshots: int
    last_snapshot_s: float
    closed_s: float
    memory: int
    memory_peak: int
    log_bytes: int
    snapshot_bytes: int
    asked: int
    waited_s: float


class Start(NamedTuple):
    """Of a process that starts from the directory. `replayed`: epochs that it ran again. `first_s`: of the first
    request by an index. Times as above.
    """

    started_s: float
    processor_s: float
    memory: int
    memory_peak: int
    replayed: int
    first_s: float
    rows: int


# What each process does ------------------------------------------------------------------------------------


def load(name: str, rows: int, directory: str, memory_max: int) -> Load:
    """Loads the rows, with the usual snapshots."""
    with _within(memory_max):
        return asyncio.run(_load(name, rows, directory))


async def _load(name: str, rows: int, directory: str) -> Load:
    before = memory()
    client = embedded(app, directory)
    async with client:
        asking = asyncio.create_task(_ask(client, name))
        begun, processor = time.perf_counter(), time.process_time()
        await client.load_rows(TABLES[name], items(rows))
        loaded_s, processor_s = time.perf_counter() - begun, time.process_time() - processor
        asking.cancel()
        asked, waited_s = await asking
        begun = time.perf_counter()
        if not await client.engine.snapshot(SNAPSHOT_SECONDS_MAX):
            raise SystemExit("the snapshot could not be stored")
        last_snapshot_s = time.perf_counter() - begun
        _check(client, name, rows)
        snapshots, held = client.engine.coordinator.snapshots_completed, memory() - before
        begun = time.perf_counter()
    closed_s = time.perf_counter() - begun
    sizes = _sizes(Path(directory))
    return Load(
        loaded_s,
        processor_s,
        snapshots,
        last_snapshot_s,
        closed_s,
        held,
        _peak(),
        *sizes,
        asked=asked,
        waited_s=waited_s,
    )


def start(name: str, rows: int, directory: str, memory_max: int, later: int = 0) -> Start:
    """Starts from the directory, where `rows` are; then loads `later` more, and crashes."""
    with _within(memory_max):
        return asyncio.run(_start(name, rows, directory, later))


async def _start(name: str, rows: int, directory: str, later: int) -> Start:
    before, begun, processor = memory(), time.perf_counter(), time.process_time()
    client = embedded(app, directory, snapshot_interval=SNAPSHOT_SECONDS_MAX)
    async with client:
        started_s, processor_s = time.perf_counter() - begun, time.process_time() - processor
        held, begun = memory() - before, time.perf_counter()
        await client.call(cart, 0, cheapest, name)
        first_s = time.perf_counter() - begun
        _check(client, name, rows)
        replayed = client.engine.counters.replayed or 0
        if later:
            await client.load_rows(TABLES[name], more_items(rows, later))
            client.crash()
    return Start(started_s, processor_s, held, _peak(), replayed, first_s, rows)


def more_items(rows: int, later: int) -> Iterator[tuple[int, Item]]:
    """Rows behind `rows` others, of the same entities."""
    entities = max(1, rows // ROWS_EACH)
    return ((number % entities, Item(rows + number, number % 7, number % 10_007)) for number in islice(count(), later))


async def _ask(client: EmbeddedClient, name: str) -> tuple[int, float]:
    """Sends small requests until it is cancelled: how many, and the longest that one has waited."""
    asked, waited_s = 0, 0.0
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            begun = time.perf_counter()
            await client.call(cart, asked, cheapest, name)
            asked, waited_s = asked + 1, max(waited_s, time.perf_counter() - begun)
            await asyncio.sleep(PAUSE_SECONDS)
    return asked, waited_s


def _check(client: EmbeddedClient, name: str, rows: int) -> None:
    held, _ = client.engine.worker.rows_held()[TABLES[name].full_name]
    if held != rows:
        raise SystemExit(f"{held:,} of {rows:,} rows are there")


def _sizes(directory: Path) -> tuple[int, int]:
    """Bytes of the log and of the snapshots."""
    sizes = {path: path.stat().st_size for path in directory.rglob("*") if path.is_file()}
    log = sum(size for path, size in sizes.items() if ".db" in path.name or "sqlite" in path.name)
    return log, sum(sizes.values()) - log


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextlib.contextmanager
def _within(memory_max: int) -> Iterator[None]:
    """Ends the process if it takes more memory."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(WATCH_SECONDS):
            if memory() > memory_max:
                sys.stderr.write(f"more than {memory_max / MB:,.0f} MB of memory: ended\n")
                os._exit(1)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


# The command -----------------------------------------------------------------------------------------------


def _told_of_load(done: Load, rows: int) -> str:
    return (
        f"load: {done.loaded_s:.1f} s, {rows / done.loaded_s:,.0f} rows a second, "
        f"{done.processor_s / rows * 1e6:.1f} µs of processor time a row; small requests meanwhile: {done.asked}, the "
        f"longest {done.waited_s:.2f} s\n"
        f"memory: {_memory(done.memory, done.memory_peak, rows)}\n"
        f"snapshots: {done.snapshots}, the last one {done.last_snapshot_s:.2f} s behind the load; on disk "
        f"{done.snapshot_bytes / MB:,.0f} MB, {done.snapshot_bytes / rows:.1f} bytes a row; the log "
        f"{done.log_bytes / MB:,.0f} MB; the end {done.closed_s:.2f} s"
    )


def _told_of_start(begun: Start, behind: str) -> str:
    return (
        f"start after {behind}: {begun.started_s:.1f} s, {begun.processor_s:.1f} s of processor time, "
        f"{begun.replayed} epochs replayed; "
        f"{_memory(begun.memory, begun.memory_peak, begun.rows)}; the first request by an index "
        f"{begun.first_s * 1000:.1f} ms"
    )


def _memory(held: int, peak: int, rows: int) -> str:
    return f"{held / MB:,.0f} MB, {held / rows:.0f} bytes a row, at most {peak / MB:,.0f} MB"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.micro.stored_rows", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--table", choices=TABLES, default="two indexes")
    parser.add_argument("--memory-max", type=int, default=12_000, metavar="MB", help="of one process, which then ends")
    options = parser.parse_args()
    rows, name, memory_max = options.rows, options.table, options.memory_max * MB
    later = max(1, int(rows * LATER_SHARE))
    print(f"{describe(FORM)}; {rows:,} rows in {max(1, rows // ROWS_EACH):,} entities, {name}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        print(_told_of_load(alone(load, name, rows, directory, memory_max), rows), flush=True)
        begun = alone(start, name, rows, directory, memory_max, later)
        print(_told_of_start(begun, "an orderly end"), flush=True)
        begun = alone(start, name, rows + later, directory, memory_max)
        print(_told_of_start(begun, f"a crash behind {later:,} more rows"), flush=True)


if __name__ == "__main__":
    main()

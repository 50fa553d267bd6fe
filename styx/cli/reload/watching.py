"""Which files of an app have changed: watchfiles reports changes, and the contents are compared with the former
ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import Final

from watchfiles import awatch

SETTLE_MS: Final = 50
"""Without a change, before one is told: an editor's save is several."""
LONGEST_SETTLE_MS: Final = 400
FILES_MAX: Final = 20_000
"""Files whose times are compared."""

Stamps = dict[str, tuple[int, int]]


def stamps(directories: Iterable[str]) -> Stamps:
    """Time and size of the Python files in each directory, without those below."""
    found: Stamps = {}
    for directory in directories:
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.name.endswith(".py") and len(found) < FILES_MAX:
                        status = entry.stat()
                        found[entry.path] = (status.st_mtime_ns, status.st_size)
        except OSError:
            continue
    return found


def changed(before: Stamps, after: Stamps) -> list[str]:
    """Files that are new, gone or different, by name."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


async def until_changed(directories: list[str], before: Stamps) -> list[str]:
    """Waits until a Python file in one of the directories is another than in `before`; gives all that are."""
    there = await asyncio.to_thread(lambda: [directory for directory in directories if os.path.isdir(directory)])
    stop = asyncio.Event()
    hearing = awatch(
        *there,
        watch_filter=None,
        debounce=LONGEST_SETTLE_MS,
        step=SETTLE_MS,
        stop_event=stop,
        recursive=False,
        yield_on_timeout=True,  # the first time soon after it has begun: what changed before that is found then
        rust_timeout=500,
        ignore_permission_denied=True,
    )
    try:
        async for _ in hearing:
            found = changed(before, await asyncio.to_thread(stamps, directories))
            if found:
                return found
    finally:
        stop.set()
        await hearing.aclose()
    return []

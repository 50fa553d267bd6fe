"""The files that a process has imported an app from: whether two processes have the same code. Reads no contents."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from styx.model.user_frames import UserFrames

Stamps = dict[str, tuple[int, int]]
"""Time of change, in nanoseconds, and size, by file name."""


def imported_files() -> Stamps:
    """Those of all modules that are neither installed nor Python's own, as they are now."""
    frames = UserFrames()
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return stamps_of(file for file in files if file and file.endswith(".py") and frames.is_own_file(file))


def stamps_of(files: Iterable[str]) -> Stamps:
    """Of those that are there."""
    found: Stamps = {}
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            continue
        found[file] = (status.st_mtime_ns, status.st_size)
    return found

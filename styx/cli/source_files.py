"""The source files of an app, by their times and sizes: whether two processes imported the same code, and what changed.

No contents are read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final

from styx.model.user_frames import UserFrames

FILES_MAX: Final = 20_000
"""Files in directories whose stamps are compared."""

Stamps = dict[str, tuple[int, int]]
"""Time of change, in nanoseconds, and size, by file name."""


def imported_files() -> Stamps:
    """The present stamps of all imported modules' files, without installed modules and Python's own."""
    frames = UserFrames()
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return stamps_of(file for file in files if file and file.endswith(".py") and frames.is_own_file(file))


def stamps_of(files: Iterable[str]) -> Stamps:
    """The stamps of those files that exist."""
    found: Stamps = {}
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            continue
        found[file] = (status.st_mtime_ns, status.st_size)
    return found


def stamps_in(directories: Iterable[str]) -> Stamps:
    """The stamps of the Python files in these directories, without those in directories below."""
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
    """Names of the files that are new, gone or different, sorted."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))

"""Making files and directory entries survive a power cut. A failure is never swallowed."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def fsync_file(descriptor: int) -> None:
    """Returns when what was written to the open file is on the disk. Raises `OSError`."""
    if sys.platform == "darwin":
        import fcntl

        # There fsync only hands the data to the drive, which may keep it in a volatile cache.
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def fsync_directory(path: Path) -> None:
    """Returns when the entries (files created, renamed, removed) of the directory are on the disk. Raises
    `OSError`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fsync_file(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Creates the directory and its missing parents, each entry on the disk; fine if it exists. Raises
    `OSError`.
    """
    if path.is_dir():
        return
    make_directory(path.parent)
    path.mkdir(exist_ok=True)
    fsync_directory(path.parent)

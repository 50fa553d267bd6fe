"""The directory an embedded engine keeps its log and snapshots in, held by one engine at a time.

The lock is the kernel's (flock), so it ends with its holder, however that dies, and a stale lock file means nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import weakref
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from styx.errors import StyxError
from styx.process.fsync import make_directory

_LOCK_NAME: Final = "lock"
_PID_BYTES_MAX: Final = 32


class DataDirectoryInUse(StyxError):
    """Another engine holds the data directory. `pid` is its process id as far as known, else None."""

    def __init__(self, path: Path, pid: int | None) -> None:
        if pid is None:
            holder, remedy = "another process", "Stop that engine"
        elif pid == os.getpid():
            holder, remedy = f"this process (pid {pid})", "Close the other client of this directory first"
        else:
            holder, remedy = f"process {pid}", f"Stop that process (kill {pid})"
        super().__init__(f"{path} is in use by {holder}. {remedy}, or use another data directory.")
        self.path = path
        self.pid = pid


class DataDirectory:
    """Creates the directory if it is missing and holds it exclusively until `release()`.

    Raises `DataDirectoryInUse` at once when it is held, by this process as well as by another one, and
    `OSError` when it cannot be created or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        make_directory(self.path.absolute())
        self._descriptor: int | None = _lock(self.path)
        _held.add(self)

    def release(self) -> None:
        """Lets the next engine in; doing it twice is fine."""
        _held.discard(self)
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            # The file stays: removing it would let two engines lock two files of the same name.
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


_held: Final[weakref.WeakSet[DataDirectory]] = weakref.WeakSet()


def _forget_in_fork() -> None:
    # Else a fork that outlives this process would keep the directory, without an engine.
    for directory in list(_held):
        directory.release()


os.register_at_fork(after_in_child=_forget_in_fork)


def _lock(directory: Path) -> int:
    descriptor = os.open(directory / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        pid = _read_pid(descriptor)
        os.close(descriptor)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise DataDirectoryInUse(directory, pid) from None
        raise
    return descriptor


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, _PID_BYTES_MAX, 0).strip()
    return int(text) if text.isdigit() else None

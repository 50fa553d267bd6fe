"""The storage of an embedded engine's log and objects: a directory, held by one engine at a time, or memory.

The directory's lock is the kernel's (flock). It ends with its holder, however that dies, and a stale lock file means
nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import weakref
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from styx.deployment.claim import Claim, claim_directory
from styx.errors import StyxError
from styx.log.base import Log
from styx.log.memory import MemoryLog
from styx.log.sqlite import SqliteLog
from styx.process.fsync import make_directory
from styx.store.base import Store
from styx.store.directory import DirectoryStore
from styx.store.memory import MemoryStore

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


LOG_NAME: Final = "log.db"
OBJECTS_NAME: Final = "objects"
UNDURABLE_BYTES_MAX: Final = 2**40
"""The log's own limit, out of reach: the engine holds back requests long before, and a reply must never be refused."""
UNDURABLE_RECORDS_MAX: Final = 2**40


@dataclass(slots=True)
class Storage:
    """An open log and store; `directory` is the lock they are held by, None in memory."""

    log: Log
    store: Store
    directory: DataDirectory | None = None

    @property
    def kept(self) -> Store | None:
        """The store, if what is in it will be there at the next start."""
        return None if self.directory is None else self.store

    @classmethod
    def open(cls, data_dir: str | os.PathLike[str] | None, deployment: Claim) -> Self:
        """Opens the directory, made if it is missing; None: in memory.

        Raises `DataDirectoryInUse`, `ConfigurationError` for a directory of another app or number of slots,
        `EngineFailed` for a damaged log, and `OSError`.
        """
        if data_dir is None:
            memory = MemoryLog(backlog_records_max=UNDURABLE_RECORDS_MAX, backlog_bytes_max=UNDURABLE_BYTES_MAX)
            return cls(memory, MemoryStore())
        path = Path(data_dir)
        directory = DataDirectory(path)
        try:
            store = DirectoryStore(path / OBJECTS_NAME)
            claim_directory(store, deployment)
            log = SqliteLog(
                path / LOG_NAME, backlog_records_max=UNDURABLE_RECORDS_MAX, backlog_bytes_max=UNDURABLE_BYTES_MAX
            )
        except BaseException:
            directory.release()
            raise
        return cls(log, store, directory)

    def close(self) -> None:
        """Makes the log durable and lets go of everything; blocks. Raises `LogFailed`."""
        try:
            self.log.close()
        finally:
            self._release()

    def crash(self) -> None:
        """Lets go of everything as a power cut would."""
        self.log.crash()
        self._release()

    def _release(self) -> None:
        if self.directory is not None:
            self.directory.release()

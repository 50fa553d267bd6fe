"""The storage of an embedded engine's log and objects: a directory, or memory. Opening and closing it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from styx.deployment.claim import Claim, claim_directory
from styx.embedded_engine.data_directory import DataDirectory
from styx.log.base import Log
from styx.log.memory import MemoryLog
from styx.log.sqlite import SqliteLog
from styx.store.base import Store
from styx.store.directory import DirectoryStore
from styx.store.memory import MemoryStore

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

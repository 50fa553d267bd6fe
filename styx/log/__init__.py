"""The replayable log: the protocol and its implementations in memory and in a SQLite file."""

from styx.log.base import (
    Log,
    LogClosed,
    LogCorrupt,
    LogFailed,
    LogOverloaded,
    LogTruncated,
    Record,
    Stream,
)
from styx.log.memory import MemoryLog
from styx.log.sqlite import SqliteLog

__all__ = [
    "Log",
    "LogClosed",
    "LogCorrupt",
    "LogFailed",
    "LogOverloaded",
    "LogTruncated",
    "MemoryLog",
    "Record",
    "SqliteLog",
    "Stream",
]

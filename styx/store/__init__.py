"""The object store: the protocol, and its implementations in memory, in a directory and on S3."""

from styx.store.base import NotFound, Store, StoreCorrupt, StoreReader
from styx.store.directory import DirectoryStore
from styx.store.memory import MemoryStore
from styx.store.open_store import open_reader, open_store

__all__ = [
    "DirectoryStore",
    "MemoryStore",
    "NotFound",
    "Store",
    "StoreCorrupt",
    "StoreReader",
    "open_reader",
    "open_store",
]

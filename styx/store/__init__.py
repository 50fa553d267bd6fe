"""The object store: its interface, and stores in memory, in a directory, on S3, Google Cloud Storage and Azure."""

from styx.store.base import NotFound, Store, StoreCorrupt, StoreReader
from styx.store.directory import DirectoryStore
from styx.store.memory import MemoryStore
from styx.store.stores import open_reader, open_store

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

"""The object store: the protocol and its implementations in memory and in a directory."""

from styx.store.base import NotFound, Store, StoreCorrupt
from styx.store.directory import DirectoryStore
from styx.store.memory import MemoryStore

__all__ = ["DirectoryStore", "MemoryStore", "NotFound", "Store", "StoreCorrupt"]

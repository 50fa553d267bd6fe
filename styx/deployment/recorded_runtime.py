"""The object in the store that records which runtime a cluster's workers run on. Blocks; for a background thread."""

from __future__ import annotations

from typing import Final

from styx.store.base import NotFound, Store, StoreReader

NAME: Final = "runtime"


def read_runtime(store: StoreReader) -> str:
    """What the last workers ran on; empty if that is not known. Raises `OSError`."""
    try:
        return store.get(NAME).decode("utf-8", "replace")
    except NotFound:
        return ""


def write_runtime(store: Store, runtime: str) -> None:
    """Notes it. Raises `OSError`."""
    store.put(NAME, runtime.encode())

"""Fetches the objects that a load will need before it asks for them, so that the load decodes one object while others
are being fetched.

A `Store` for reading only: an object that was not announced is fetched when it is asked for. Blocks; for a background
thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

from styx.snapshot.part import Span
from styx.store.base import Store

FETCHES_MAX: Final = 8
"""Objects on their way at once."""
AHEAD_BYTES_MAX: Final = 256 * 1024 * 1024
"""Objects fetched, or on their way, and not yet asked for; one is always let in."""


class PrefetchingStore:
    """Fetches `wanted` in the order in which they will be asked for; to be used as a context manager."""

    def __init__(self, store: Store, wanted: Sequence[Span]) -> None:
        self._store = store
        self._coming = list(reversed(wanted))
        self._ahead: dict[tuple[str, int, int], Future[bytes]] = {}
        self._bytes = 0
        self._threads = ThreadPoolExecutor(FETCHES_MAX, thread_name_prefix="styx-prefetch")

    def __enter__(self) -> Self:
        self._fetch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def get_range(self, name: str, start: int, size: int) -> bytes:
        """As `Store.get_range`."""
        fetched = self._ahead.pop((name, start, size), None)
        if fetched is None:
            return self._store.get_range(name, start, size)
        try:
            return fetched.result()
        finally:
            self._bytes -= size
            self._fetch()

    def _fetch(self) -> None:
        while self._coming and (not self._ahead or self._bytes + self._coming[-1].size <= AHEAD_BYTES_MAX):
            name, start, size, _ = self._coming.pop()
            self._bytes += size
            self._ahead[name, start, size] = self._threads.submit(self._store.get_range, name, start, size)

    def get(self, name: str) -> bytes:
        """As `Store.get`."""
        return self._store.get(name)

    def put(self, name: str, data: bytes) -> None:
        """As `Store.put`."""
        self._store.put(name, data)

    def put_new(self, name: str, data: bytes) -> bool:
        """As `Store.put_new`."""
        return self._store.put_new(name, data)

    def list(self, prefix: str) -> list[str]:
        """As `Store.list`."""
        return self._store.list(prefix)

    def delete(self, name: str) -> None:
        """As `Store.delete`."""
        self._store.delete(name)

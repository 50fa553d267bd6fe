"""Fetches the objects that a load will need before it asks for them, so that the load decodes one object while others
are being fetched.

An object that was not announced is fetched when it is asked for. Blocks; for a background thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

from styx.snapshot.load import Objects
from styx.snapshot.part import Span

FETCHES_MAX: Final = 8
"""Objects on their way at once."""
AHEAD_BYTES_MAX: Final = 256 * 1024 * 1024
"""Objects fetched, or on their way, and not yet asked for; one is always let in."""


class PrefetchingStore:
    """Fetches `wanted` in the order in which they will be asked for; to be used as a context manager."""

    def __init__(self, store: Objects, wanted: Sequence[Span]) -> None:
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
        """As `StoreReader.get_range`."""
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

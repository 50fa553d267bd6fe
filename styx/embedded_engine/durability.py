"""Who waits for which log sequence number to be durable. Plain bookkeeping: it never touches the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class DurableWaiters:
    """Callbacks in the order of their log sequence numbers, one at least for each call of `add`."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, lsn: int, callback: Callable[[], None]) -> None:
        """`callback` runs in `release` once everything up to `lsn` is durable; `lsn` never goes back."""
        assert not self._waiting or self._waiting[-1][0] <= lsn
        self._waiting.append((lsn, callback))

    def due(self, durable_lsn: int) -> bool:
        """`release` would run something."""
        return bool(self._waiting) and self._waiting[0][0] <= durable_lsn

    def release(self, durable_lsn: int) -> None:
        """Runs what waited for nothing beyond `durable_lsn`."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= durable_lsn:
            waiting.popleft()[1]()

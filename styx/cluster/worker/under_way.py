"""The appends of one generation that are under way: handed on, and not known to be in the log for good. A snapshot
waits for those that were begun before it. It appends nothing itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class UnderWay:
    """On the loop that runs now. Whoever began an append sets its future's result when it is durable."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._appends: set[asyncio.Future[None]] = set()

    def begin(self) -> asyncio.Future[None]:
        """The future of another append."""
        durable: asyncio.Future[None] = self._loop.create_future()
        self._appends.add(durable)
        durable.add_done_callback(self._appends.discard)
        return durable

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls `then` once all appends that were begun so far are durable. Never calls it if one cannot be."""
        waiting = set(self._appends)
        if not waiting:
            then()
            return

        def one_less(future: asyncio.Future[None]) -> None:
            waiting.discard(future)
            if not waiting and not future.cancelled():
                then()

        for future in list(waiting):
            future.add_done_callback(one_less)

    def end(self) -> None:
        """Drops the callbacks that wait for what is not durable, with all that they refer to."""
        for durable in list(self._appends):
            durable.cancel()

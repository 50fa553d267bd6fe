"""Who waits for the end of an epoch: each is woken once, when it has come."""

from __future__ import annotations

import asyncio
import heapq
from typing import Final

WAITING_MAX: Final = 1_000
"""Requests with a token that wait at once; another one is refused."""


class EpochWaits:
    """Those of one replica."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, asyncio.Future[None]]] = []
        self._number = 0
        self.waiting = 0

    async def wait(self, epoch: int, seconds: float) -> None:
        """Returns when `come` is called with this epoch or a later one. Raises `TimeoutError`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._number += 1
        heapq.heappush(self._heap, (epoch, self._number, future))
        self.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await future
        finally:
            self.waiting -= 1
            if len(self._heap) > 2 * self.waiting + WAITING_MAX:
                self._heap = [each for each in self._heap if not each[2].done()]
                heapq.heapify(self._heap)

    def come(self, epoch: int) -> None:
        """The state is at the end of this epoch."""
        while self._heap and self._heap[0][0] <= epoch:
            future = heapq.heappop(self._heap)[2]
            if not future.done():
                future.set_result(None)

"""Virtual time: what happens when, in one queue; nothing waits and nothing reads a clock."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any


class VirtualTime:
    """`now_s` starts at 0. Of two things due at the same time the one asked for first happens first."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._numbers = count()

    def after(self, delay_s: float, action: Callable[..., None], *args: Any) -> None:
        """Does `action(*args)` when `delay_s` have passed."""
        self.at(self.now_s + delay_s, action, *args)

    def at(self, due_s: float, action: Callable[..., None], *args: Any) -> None:
        """Does `action(*args)` at `due_s`; an order of due times survives, which rounded delays would not keep."""
        heapq.heappush(self._queue, (due_s, next(self._numbers), action, args))

    def next(self) -> bool:
        """Does what is due next; False if nothing ever is."""
        if not self._queue:
            return False
        self.now_s, _, action, args = heapq.heappop(self._queue)
        action(*args)
        return True

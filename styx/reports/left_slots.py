"""Local functions whose transactions have left their slot: counted by function, and told in the log, each function once
in a while.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

AGAIN_SECONDS: Final = 60.0
"""The interval at which the log names a function again."""

_log = logging.getLogger("styx.functions")


class LeftSlots:
    """`by_function` counts the transactions since the process started, by the function's full name."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.by_function: dict[str, int] = {}
        self._clock = clock
        self._told: dict[str, tuple[float, int]] = {}

    def add(self, functions: Mapping[tuple[str, str], int]) -> None:
        """Takes transactions that left their slot, by (operator, function)."""
        for (operator, function), count in functions.items():
            name = f"{operator}.{function}"
            self.by_function[name] = self.by_function.get(name, 0) + count
            self._tell(name)

    def _tell(self, name: str) -> None:
        now_s, count = self._clock(), self.by_function[name]
        before = self._told.get(name)
        if before is not None and now_s - before[0] < AGAIN_SECONDS:
            return
        self._told[name] = (now_s, count)
        _log.warning(
            "%s is registered with local=True, but %d of its requests left the slot since this was last said: they "
            "called an entity of another slot, or an external function. Each took one epoch more than without the "
            "hint. Let a partition_key put these entities together, or register the function without local=True",
            name,
            count - (0 if before is None else before[1]),
        )

"""Checks from another thread whether an event loop turns: code that runs there outside of passes can hold it up, too.

Such code is the finalizer of an asynchronous generator that a function left, or a task that a function began. It can be
named, but not interrupted.
"""

from __future__ import annotations

from collections.abc import Callable


class HeldLoop:
    """`call_soon` has the loop call something, from any thread."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._asked = False
        self._seconds = 0.0

    def look(self, passed_s: float, within_pass: bool) -> float:
        """For how many seconds it has not turned, those of passes left out; `passed_s` since the last look."""
        if not self._asked:
            self._asked, self._seconds = True, 0.0
            try:
                self._call_soon(self._answer)
            except RuntimeError:
                self._asked = False  # the loop is closed
            return 0.0
        self._seconds = 0.0 if within_pass else self._seconds + passed_s
        return self._seconds

    def _answer(self) -> None:
        self._asked = False

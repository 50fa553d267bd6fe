"""Context variables (`contextvars`, `decimal.localcontext`) that a function sets belong to that function, as they would
to a task.

Every function starts with none set. Functions share one context of variables until one of them sets a variable, because
a context for each function costs more. The first function that sets a variable keeps that context, and the others get a
new one. Variables of the application around the engine are neither seen nor changed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import Context as Variables
from typing import Any


class OwnVariables:
    """`shared` is the context in which nothing is set; `_own` are those of suspended functions that have set some."""

    __slots__ = ("_own", "shared")

    def __init__(self) -> None:
        self.shared = Variables()
        self._own: dict[Any, Variables] = {}

    def run(self, steps: Callable[[int], int], count: int) -> int:
        """`steps(count)` where nothing is set; it gives how many are left, and ends early if something is set."""
        if len(self.shared):
            self.shared = Variables()
        return self.shared.run(steps, count)

    def waits(self, invocation: Any) -> None:
        """The invocation is suspended: the variables that it has set are kept for it."""
        if len(self.shared):
            self._own[invocation] = self.shared

    def send(self, invocation: Any, coroutine: Coroutine[Any, Any, Any], value: bytes | None) -> Any:
        """What the invocation's coroutine yields next; raises what it raises."""
        own = self._own.get(invocation)
        return coroutine.send(value) if own is None else own.run(coroutine.send, value)

    def clear(self) -> None:
        """An epoch has ended: no function is suspended any more."""
        self._own.clear()


def apart(step: Callable[..., Any], *arguments: Any) -> Any:
    """`step(*arguments)` with no variable set, and what it sets is dropped."""
    return Variables().run(step, *arguments)

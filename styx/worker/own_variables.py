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
    """The contexts of variables. In `shared` no variable is set. `_own` are the contexts of suspended functions that
    have set variables.
    """

    __slots__ = ("_own", "shared")

    def __init__(self) -> None:
        self.shared = Variables()
        self._own: dict[Any, Variables] = {}

    def run(self, steps: Callable[[int], int], count: int) -> int:
        """Calls `steps(count)` in the shared context. `steps` returns how many steps are left, and ends early when a
        function has set a variable.
        """
        if len(self.shared):
            self.shared = Variables()
        return self.shared.run(steps, count)

    def waits(self, invocation: Any) -> None:
        """Keeps the variables that a suspended invocation has set."""
        if len(self.shared):
            self._own[invocation] = self.shared

    def send(self, invocation: Any, coroutine: Coroutine[Any, Any, Any], value: bytes | list[bytes] | None) -> Any:
        """Sends `value` to the invocation's coroutine. Returns what it yields, and raises what it raises."""
        own = self._own.get(invocation)
        return coroutine.send(value) if own is None else own.run(coroutine.send, value)

    def clear(self) -> None:
        """Drops all variables at an epoch's end, when no function is suspended any more."""
        self._own.clear()


def apart(step: Callable[..., Any], *arguments: Any) -> Any:
    """Calls `step(*arguments)` in a new context without variables. Variables that it sets are dropped."""
    return Variables().run(step, *arguments)

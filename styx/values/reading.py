"""What `Context.get` gives: a value that was read already, for who awaits it. Whether it was awaited is known of it.

It stands for a coroutine, and looks like one, so that one mistake with `get`, `call` or `call_external` is told in one
way. But in the compiled form it costs less than one, and whether it was awaited is seen without asking the interpreter.
Never reads anything itself.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NoReturn

_TWICE = "cannot reuse already awaited coroutine"


class Reading:
    """`ended`: it was awaited, or closed, and holds nothing any more."""

    __slots__ = ("ended", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.ended = False

    def __repr__(self) -> str:
        return "<coroutine object Context.get>"

    def __await__(self) -> Generator[Any, Any, Any]:
        if self.ended:
            raise RuntimeError(_TWICE)
        value = self.value
        self.value, self.ended = None, True
        return value
        yield  # what makes it a generator: the value is taken by who waits for it, not by who asks how to

    def send(self, value: Any) -> NoReturn:
        """As a coroutine's."""
        raise StopIteration(self._taken())

    def throw(self, error: Any, value: Any = None, traceback: Any = None) -> NoReturn:
        """As a coroutine's."""
        self._taken()
        raise error if value is None else value

    def close(self) -> None:
        """As a coroutine's: nobody is to await it."""
        self.value, self.ended = None, True

    def _taken(self) -> Any:
        if self.ended:
            raise RuntimeError(_TWICE)
        value = self.value
        self.value, self.ended = None, True
        return value


# What Python says of one that was not awaited is what it says of every other: 'coroutine' object is not subscriptable.
setattr(Reading, "__name__", "coroutine")  # noqa: B010 - a compiled class takes no assignment

"""The awaitable that `Context.get` and the methods of `Rows` return: a value that is there already. It knows whether it
was awaited.

It stands for a coroutine, and looks like one, so that the same mistake with `get`, `call` or `call_external` gives the
same error. In the compiled form it costs less than a coroutine, and the engine sees without asking the interpreter
whether it was awaited.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NoReturn

from styx.native.interpreted import native

_TWICE = "cannot reuse already awaited coroutine"


@native(short_lived=True)
class Reading:
    """`ended`: it was awaited, or closed, and holds nothing any more. `method` gave it; `table`: of this table's rows,
    "" for `Context.get`.
    """

    __slots__ = ("ended", "method", "table", "value")

    def __init__(self, value: Any, method: str = "get", table: str = "") -> None:
        self.value = value
        self.ended = False
        self.method = method
        self.table = table

    @property
    def called(self) -> str:
        """What Python calls such a coroutine in its messages."""
        return "Rows.method" if self.table else "Context.get"

    def __repr__(self) -> str:
        return f"<coroutine object {self.called}>"

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
        """As a coroutine's: it cannot be awaited any more."""
        self.value, self.ended = None, True

    def _taken(self) -> Any:
        if self.ended:
            raise RuntimeError(_TWICE)
        value = self.value
        self.value, self.ended = None, True
        return value


# What Python says of one that was not awaited is what it says of every other: 'coroutine' object is not subscriptable.
setattr(Reading, "__name__", "coroutine")  # noqa: B010 - a compiled class takes no assignment

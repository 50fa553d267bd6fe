"""What a blocking client's readers share: a reader of an asynchronous client, driven on the client's event loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Reader(Protocol[T_co]):
    """What is read, one by one."""

    async def __anext__(self) -> T_co: ...

    async def aclose(self) -> None:
        """Ends it."""


class SyncReader(Generic[T]):
    """What a reader gives, one by one: an iterator, and a context manager that frees what it holds. `make` makes the
    reader on the event loop, on which `start` runs coroutines.
    """

    def __init__(self, make: Callable[[], Reader[T]], start: Callable[[Coroutine[Any, Any, Any]], Future[Any]]) -> None:
        async def made() -> Reader[T]:
            return make()

        self._start = start
        self._reader: Reader[T] = start(made()).result()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        """The next one; it waits for one, and raises what the reader raises."""
        try:
            found: T = self._start(self._reader.__anext__()).result()
        except StopAsyncIteration:
            raise StopIteration from None
        return found

    def close(self) -> None:
        """Ends the reader."""
        self._start(self._reader.aclose()).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

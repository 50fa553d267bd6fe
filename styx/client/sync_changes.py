"""The reader of changes of a synchronous client."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from styx.client.changes import ChangedEpoch, ChangeReader


class SyncChangeReader:
    """The epochs with changes, one by one: an iterator, and a context manager that frees what it holds."""

    def __init__(
        self, make: Callable[[], ChangeReader], start: Callable[[Coroutine[Any, Any, Any]], Future[Any]]
    ) -> None:
        async def made() -> ChangeReader:
            return make()

        self._start = start
        self._reader: ChangeReader = start(made()).result()

    @property
    def epoch(self) -> int | None:
        """As `ChangeReader.epoch`."""
        return self._reader.epoch

    def begin(self) -> int:
        """As `ChangeReader.begin`."""
        epoch: int = self._start(self._reader.begin()).result()
        return epoch

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ChangedEpoch:
        """The next epoch with changes; it waits for one, and raises what `ChangeReader` raises."""
        epoch: ChangedEpoch = self._start(anext(self._reader)).result()
        return epoch

    def close(self) -> None:
        """Ends the reader."""
        self._start(self._reader.aclose()).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

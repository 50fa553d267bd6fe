"""The reads of a blocking client, as `styx.client.reading` has them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from styx.client.reading import Reading
from styx.client.sync_listing import SyncListing
from styx.messages import Reply
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT

if TYPE_CHECKING:
    from styx.typed import Operator

K = TypeVar("K")
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class SyncReading(SyncListing):
    """The part of a blocking client that reads."""

    @property
    def _client(self) -> Reading:
        raise NotImplementedError

    def _start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        raise NotImplementedError

    @property
    def epoch(self) -> int:
        """As `Reading.epoch`."""
        return self._client.epoch

    def saw(self, epoch: int) -> None:
        """As `Reading.saw`."""
        self._client.saw(epoch)

    @overload
    def read(
        self,
        operator: Any,
        key: Any,
        *,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Reply: ...

    @overload
    def read(
        self,
        operator: Operator[K, Any],
        key: K,
        function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]],
        *args: P.args,
        **named: P.kwargs,
    ) -> R: ...

    @overload
    def read(
        self,
        operator: Any,
        key: Any,
        function: Callable[..., Coroutine[Any, Any, R]],
        *args: Any,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
    ) -> R: ...

    @overload
    def read(
        self,
        operator: Any,
        key: Any,
        function: str,
        *args: Any,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
    ) -> Any: ...

    def read(self, operator: Any, key: Any, function: Any = None, *args: Any, **options: Any) -> Any:
        """The result of a read-only function, read outside the log, or the `Reply` with the state of one entity, as
        `Reading.read`.
        """
        return self._start(self._client.read(operator, key, function, *args, **options)).result()

    def read_request(
        self,
        operator: Any,
        key: Any,
        function: Any,
        *args: Any,
        freshness: str | None = None,
        at: int | None = None,
        max_staleness_s: float | None = None,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
    ) -> Reply:
        """As `Reading.read_request`."""
        asked = self._client.read_request(
            operator,
            key,
            function,
            *args,
            freshness=freshness,
            at=at,
            max_staleness_s=max_staleness_s,
            timeout=timeout,
        )
        return self._start(asked).result()

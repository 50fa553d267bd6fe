"""The blocking client: any client, driven by an event loop on a thread of its own. It has no logic about requests."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self

from anyio.from_thread import BlockingPortal, start_blocking_portal

from styx.bulk_load import LoadReport
from styx.client.base import (
    Client,
    FunctionLike,
    KeyLike,
    OperatorLike,
    Pairs,
    check_timeout,
    not_open,
)
from styx.limits import TIMEOUT_SECONDS_DEFAULT
from styx.messages import Reply


class SyncClient:
    """The client that `make` returns, blocking and with the same names; use it as `with`. Safe to share among threads.

    Everything is as in `Client`, save that `submit` returns a `concurrent.futures.Future`.
    """

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make = make
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._client: Client | None = None

    def submit(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Future[Reply]:
        """Sends a request without waiting; the future's `result()` gives its `Reply`."""
        check_timeout(timeout)
        if self._portal is None or self._client is None:
            raise not_open("with")
        request = partial(self._client.request, timeout=timeout, idempotency_key=idempotency_key)
        return self._portal.start_task_soon(request, operator, key, function, *args)

    def request(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Reply:
        """The request's `Reply`, as `Client.request`."""
        return self.submit(operator, key, function, *args, timeout=timeout, idempotency_key=idempotency_key).result()

    def call(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Any:
        """The function's result, as `Client.call`."""
        return self.request(operator, key, function, *args, timeout=timeout, idempotency_key=idempotency_key).unwrap()

    def load(
        self,
        operator: OperatorLike,
        pairs: Pairs,
        *,
        replace: bool = False,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
    ) -> LoadReport:
        """As `Client.load`; `pairs` is iterated on the client's own thread."""
        check_timeout(timeout)
        if self._portal is None or self._client is None:
            raise not_open("with")
        return self._portal.call(partial(self._client.load, operator, pairs, replace=replace, timeout=timeout))

    def close(self) -> None:
        """Closes the client and ends its thread; closing twice is harmless."""
        self._portal = self._client = None
        self._stack.close()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal())
            client = stack.enter_context(portal.wrap_async_context_manager(self._make()))
            self._stack, self._portal, self._client = stack.pop_all(), portal, client
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

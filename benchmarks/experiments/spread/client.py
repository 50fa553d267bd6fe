"""A client of several clusters, for loading and auditing them: sends each request to the cluster of its operator."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Self

from benchmarks.experiments.spread.operators import operators
from styx.client.base import Client, FunctionLike, KeyLike, OperatorLike
from styx.client.load import LoadTarget
from styx.messages import Reply
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT


class SpreadClient(Client):
    """`open_each` gives the clusters' clients, in their order. Knows the operators of `operators`, and no names."""

    def __init__(self, open_each: Sequence[Callable[[], AbstractAsyncContextManager[Client]]]) -> None:
        self._open_each = open_each
        self._of: dict[OperatorLike, Client] = {}
        self._stack = AsyncExitStack()

    def submit(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> Awaitable[Reply]:
        """See `Client.submit`."""
        client = self._of[operator]
        return client.submit(operator, key, function, *args, timeout=timeout, idempotency_key=idempotency_key)

    def load_target(self, operator: OperatorLike, replace: bool, timeout: float) -> LoadTarget:
        """See `Client.load_target`."""
        return self._of[operator].load_target(operator, replace, timeout)

    async def close(self) -> None:
        """See `Client.close`."""
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for operator, opened in zip(operators(len(self._open_each)), self._open_each, strict=True):
                self._of[operator] = await stack.enter_async_context(opened())
            self._stack = stack.pop_all()
        return self

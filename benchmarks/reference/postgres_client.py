"""The bank of YCSB-T in PostgreSQL, behind Styx's client interface, so that the same workload and audit run on it.

It maps requests to statements. The statements and the pools are in other files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from benchmarks.driver.styx_target import ClientTarget
from benchmarks.driver.target import Target
from benchmarks.reference.postgres_bank import abort_of, statement
from benchmarks.reference.postgres_dedicated_pool import DedicatedPool
from benchmarks.reference.postgres_settle import AbortOf, Pool
from benchmarks.reference.postgres_stock_pool import StockPool
from styx.client.base import Client, FunctionLike, KeyLike, OperatorLike, function_name, not_open, rejected
from styx.client.load import LoadTarget
from styx.errors import BadArguments, RequestRejected
from styx.messages import Reply
from styx.model.limits import TIMEOUT_SECONDS_DEFAULT

WAITING_MAX_DEFAULT: Final = 10_000
"""Requests that wait for a connection at once."""
POOLS: Final[Mapping[str, Callable[[Mapping[str, Any], int, int, AbortOf], Pool]]] = {
    "asyncpg": StockPool,
    "dedicated": DedicatedPool,
}
"""By the name that options and results have for it."""


class Access(NamedTuple):
    """How clients use the server: `pool` is a name in `POOLS`, `transfer` one in the bank's `TRANSFERS`."""

    pool: str = "asyncpg"
    transfer: str = "update"


ACCESS_DEFAULT: Final = Access()


class PostgresClient(Client):
    """`connection` are the arguments of `asyncpg.connect`; `size` connections run the requests."""

    def __init__(
        self,
        connection: Mapping[str, Any],
        size: int,
        waiting_max: int = WAITING_MAX_DEFAULT,
        access: Access = ACCESS_DEFAULT,
    ) -> None:
        self._arguments = connection, size, waiting_max
        self._access = access
        self._pool: Pool | None = None

    async def __aenter__(self) -> Self:
        self._pool = POOLS[self._access.pool](*self._arguments, abort_of)
        try:
            await self._pool.open()
        except BaseException:
            await self.close()
            raise
        return self

    def submit(
        self,
        operator: OperatorLike,
        key: KeyLike,
        function: FunctionLike,
        *args: Any,
        timeout: float = TIMEOUT_SECONDS_DEFAULT,
        idempotency_key: str | None = None,
    ) -> asyncio.Future[Reply]:
        """See `Client.submit`; there are no idempotency keys."""
        if self._pool is None:
            raise not_open("async with")
        try:
            return self._pool.run(statement(key, function_name(function), args, self._access.transfer), timeout)
        except OverflowError as error:
            return _done(rejected(RequestRejected("overloaded", str(error))))
        except ValueError as error:
            return _done(rejected(RequestRejected("unknown_function", str(error))))

    def load_target(self, operator: OperatorLike, replace: bool, timeout: float) -> LoadTarget:
        """Never: tables are filled by COPY."""
        raise BadArguments("PostgreSQL's tables are filled when they are made")

    async def close(self) -> None:
        """See `Client.close`."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()


@dataclass(frozen=True)
class PostgresTargets:
    """A `TargetFactory`: `size` connections to the server that `connection` describes."""

    connection: Mapping[str, Any]
    size: int
    access: Access = ACCESS_DEFAULT

    def __call__(self, timeout_s: float, in_flight_max: int) -> Target:
        """See `TargetFactory`."""
        return ClientTarget(lambda: PostgresClient(self.connection, self.size, in_flight_max, self.access), timeout_s)


def _done(reply: Reply) -> asyncio.Future[Reply]:
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    future.set_result(reply)
    return future

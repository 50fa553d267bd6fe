"""Connections to the database, and transactions that are repeated, a bounded number of times, until they are
serialized.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import asyncpg
import msgspec
from asyncpg import DeadlockDetectedError, SerializationError

T = TypeVar("T")

ATTEMPTS_MAX: Final = 1_000
"""Of one transaction; then its caller hears that the database is overloaded."""
CONNECTION_VARIABLE: Final = "BENCHMARK_POSTGRES"
"""Names the database: the keyword arguments of `asyncpg.connect`, as JSON."""
CONNECTIONS_VARIABLE: Final = "BENCHMARK_POSTGRES_CONNECTIONS"
"""How many connections each process has."""
SESSION: Final = {
    # The tables are small at first. Read as a whole, each would be in conflict with all other transactions.
    "enable_seqscan": "off",
    "jit": "off",
    # The statements are few and their plans depend on no parameter.
    "plan_cache_mode": "force_generic_plan",
}
"""Settings of each connection."""
_REPEATED: Final = (SerializationError, DeadlockDetectedError)


class Overloaded(Exception):
    """A transaction was not serialized in `ATTEMPTS_MAX` attempts."""


async def _keep(_: asyncpg.Connection) -> None:
    """Instead of a reset, which is a round trip: no statement leaves anything in its session."""


def pool_here() -> Any:
    """A pool of connections, not yet open, as the environment says. Raises `KeyError` if it says nothing."""
    size = int(os.environ[CONNECTIONS_VARIABLE])
    return asyncpg.create_pool(
        **json.loads(os.environ[CONNECTION_VARIABLE]),
        min_size=size,
        max_size=size,
        max_queries=10**9,
        reset=_keep,
        init=_set_up,
        server_settings=SESSION,
    )


async def serialized(pool: Any, sql: str, *parameters: Any) -> Any:
    """The first row of a statement, which is a transaction; None if there is none. Raises as `repeated`."""
    return await repeated(pool, lambda connection: connection.fetchrow(sql, *parameters))


async def repeated(pool: Any, attempt: Callable[[Any], Awaitable[T]]) -> T:
    """What `attempt` gives, which is one transaction on a connection.

    Raises `Overloaded`, what `attempt` raises, and `asyncpg.PostgresError` for all else that the server refuses.
    """
    async with pool.acquire() as connection:
        for _ in range(ATTEMPTS_MAX):
            try:
                return await attempt(connection)
            except _REPEATED:
                continue
    raise Overloaded(f"not serialized in {ATTEMPTS_MAX} attempts")


async def _set_up(connection: asyncpg.Connection) -> None:
    """JSON columns are decoded by msgspec."""
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=_encoded, decoder=msgspec.json.decode, format="text"
    )


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()

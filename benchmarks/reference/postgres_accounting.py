"""What a PostgreSQL server's processes do, and what it has counted, for the driver's accounting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import asyncpg
import psutil  # type: ignore[import-untyped]

from benchmarks.driver.processes import with_children
from benchmarks.reference.postgres_server import DATABASE, PostgresServer

BACKENDS: Final = "postgres backends"
BACKGROUND: Final = "postgres background"
QUIET_SECONDS_MAX: Final = 5.0
"""How long the server may take to count the transactions of connections that have ended."""
POLL_SECONDS: Final = 0.05

_OTHER_CLIENTS: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
_COUNTED: Final = "SELECT xact_rollback, deadlocks FROM pg_stat_database WHERE datname = current_database()"


class Counted(NamedTuple):
    """What the server has counted since the tables were filled. What it has committed is not here: that would include
    the resets of connections by asyncpg's pool."""

    rolled_back: int
    deadlocks: int


def processes(server: PostgresServer) -> Callable[[], Mapping[str, Sequence[int]]]:
    """The server's processes, those that serve connections apart from the others, such as the WAL writer."""
    roles: dict[int, str] = {}

    def pids() -> Mapping[str, Sequence[int]]:
        by_role: dict[str, list[int]] = {}
        for pid in with_children(server.postmaster):
            role = roles.get(pid)
            if role is None:
                role = roles[pid] = role_of(_title(pid), server.user)
            by_role.setdefault(role, []).append(pid)
        return by_role

    return pids


def role_of(title: str, user: str) -> str:
    """By a process's title: `postgres: USER DATABASE [local] idle` serves a connection."""
    return BACKENDS if title.startswith(f"postgres: {user} {DATABASE} ") else BACKGROUND


def _title(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


async def counted(server: PostgresServer) -> Counted:
    """To be asked when all clients have ended, for a connection's last transactions are counted at its end."""
    connection = await asyncpg.connect(**server.connection())
    try:
        async with asyncio.timeout(QUIET_SECONDS_MAX):
            while await connection.fetchval(_OTHER_CLIENTS):  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(POLL_SECONDS)
        return Counted(*await connection.fetchrow(_COUNTED))
    finally:
        await connection.close()

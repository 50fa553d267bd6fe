"""PostgreSQL as a deployment for the driver: a server of its own with the bank's table, filled by COPY.

Nothing of it is left afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import asyncpg
import psutil  # type: ignore[import-untyped]

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.processes import with_children
from benchmarks.driver.workload import Workload
from benchmarks.reference.postgres_bank import CLEAR, FILL_PERCENT, SCHEMA
from benchmarks.reference.postgres_client import ACCESS_DEFAULT, Access, PostgresClient, PostgresTargets
from benchmarks.reference.postgres_server import DATABASE, PostgresServer
from benchmarks.reference.postgres_settle import SESSION

BACKENDS: Final = "postgres backends"
BACKGROUND: Final = "postgres background"
AUDIT_CONNECTIONS: Final = 8
QUIET_SECONDS_MAX: Final = 5.0
"""How long the server may take to count the transactions of connections that have ended."""
POLL_SECONDS: Final = 0.05

_OTHER_CLIENTS: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
_COUNTED: Final = "SELECT xact_rollback, deadlocks FROM pg_stat_database WHERE datname = current_database()"


class Counted(NamedTuple):
    """What the server has counted since the table was filled. What it has committed is not here: that would include
    the resets of connections by asyncpg's pool."""

    rolled_back: int
    deadlocks: int


@asynccontextmanager
async def postgres_deployment(
    server: PostgresServer, workload: Workload, connections: int, clients: int, access: Access = ACCESS_DEFAULT
) -> AsyncIterator[Deployment]:
    """On a server that runs; a table that is there already is filled anew. `connections` are over all `clients`."""
    await fill(server, workload)
    each = max(1, connections // clients)
    yield Deployment(
        facts={
            "kind": server.version,
            "pool": access.pool,
            "connections": each * clients,
            "statement": access.transfer,
            **server.settings,
            **SESSION,
            "fillfactor": FILL_PERCENT,
        },
        open_client=lambda: PostgresClient(server.connection(), AUDIT_CONNECTIONS),
        make_target=PostgresTargets(server.connection(), each, access),
        pids=processes(server),
    )


async def fill(server: PostgresServer, workload: Workload) -> None:
    """Makes the table anew with the workload's initial state, in as good a shape as a table can be."""
    connection = await asyncpg.connect(**server.connection())
    try:
        await connection.execute(CLEAR)
        await connection.execute(SCHEMA)
        for loading in workload.initial():
            await connection.copy_records_to_table(loading.operator.name, records=_rows(loading.pairs))
        await connection.execute("VACUUM ANALYZE")
        await connection.execute("CHECKPOINT")
        await connection.execute("SELECT pg_stat_reset()")
    finally:
        await connection.close()


def _rows(pairs: Any) -> Iterator[tuple[int, int]]:
    return ((key, account.balance) for key, account in pairs)


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

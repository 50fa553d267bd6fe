"""PostgreSQL as a deployment for the driver: a server of its own with the bank's table, filled by COPY.

Nothing of it is left afterwards.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

from benchmarks.driver.deployment.base import Deployment
from benchmarks.driver.workload import Workload
from benchmarks.reference.postgres_accounting import processes
from benchmarks.reference.postgres_bank import CLEAR, FILL_PERCENT, SCHEMA
from benchmarks.reference.postgres_client import ACCESS_DEFAULT, Access, PostgresClient, PostgresTargets
from benchmarks.reference.postgres_server import PostgresServer
from benchmarks.reference.postgres_settle import SESSION

AUDIT_CONNECTIONS: Final = 8


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

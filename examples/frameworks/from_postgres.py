"""Accounts from a PostgreSQL table into the bank: `python -m examples.frameworks.from_postgres DSN URL`."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import asyncpg

import styx
from styx.client.base import Client

ROWS_AT_ONCE = 1_000


async def copy_accounts(connection: Any, bank: Client) -> int:
    """Copies the rows of `accounts (name text, balance bigint)`, and returns their number. Running it again is safe."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        rows = connection.cursor("SELECT name, balance FROM accounts", prefetch=ROWS_AT_ONCE)
        report = await bank.load("account", pairs(rows), replace=True)
    return report.loaded


async def pairs(rows: Any) -> AsyncIterator[tuple[str, dict[str, int]]]:
    async for name, balance in rows:
        yield name, {"balance": balance}


async def main(dsn: str, url: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        async with styx.connect(url) as bank:
            print(f"{await copy_accounts(connection, bank)} accounts")
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))

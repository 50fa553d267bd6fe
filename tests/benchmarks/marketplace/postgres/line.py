"""The PostgreSQL line for tests: a server, the data of `shop.py` in its tables, the application without a network."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import httpx
import pytest

from benchmarks.driver.http_request import body_of, path_of, reply_of
from benchmarks.driver.workload import Loading, Planned
from benchmarks.marketplace.app import app
from benchmarks.marketplace.postgres.application import make_app
from benchmarks.marketplace.postgres.checking_out import CHECKOUT_VARIABLE
from benchmarks.marketplace.postgres.filling import fill
from benchmarks.marketplace.postgres.serving import SETTINGS
from benchmarks.marketplace.services.cart.replica import Replica
from benchmarks.reference.postgres_server import PostgresServer, find_binaries, postgres_server
from benchmarks.reference.serialized import CONNECTION_VARIABLE, CONNECTIONS_VARIABLE
from styx.errors import ConfigurationError
from styx.messages import Reply
from tests.benchmarks.marketplace import shop


def new_server() -> Iterator[PostgresServer]:
    """What a fixture of a module yields; skips without PostgreSQL."""
    try:
        find_binaries()
    except ConfigurationError as error:
        pytest.skip(str(error))
    # What is tested survives no crash, so nothing waits for a disk.
    with postgres_server({**SETTINGS, "shared_buffers": "64MB", "fsync": "off"}) as running:
        yield running


class Loaded:
    """Takes what `shop.load` loads."""

    def __init__(self) -> None:
        self.loadings: list[Loading] = []

    async def load(self, operator: Any, pairs: Any) -> None:
        found = app.operators[operator] if isinstance(operator, str) else operator
        self.loadings.append(Loading(found, len(pairs), [(key, _struct(operator, value)) for key, value in pairs]))

    async def load_rows(self, table: Any, pairs: Any) -> None:
        self.loadings.append(Loading(app.operators[table.operator], len(pairs), pairs, table))


def _struct(operator: Any, value: Any) -> Any:
    return Replica(*value) if operator == "replica" else value


class Line:
    """The application on tables with the data of the shop."""

    def __init__(self, client: httpx.AsyncClient, connection: asyncpg.Connection) -> None:
        self._client = client
        self.connection = connection

    async def request(self, operator: str, key: Any, function: str, *arguments: Any) -> Reply:
        planned = Planned("", app.operators[operator], key, function, arguments)
        answer = await self._client.post(path_of(planned), content=body_of(planned))
        reply = reply_of(answer.status_code, answer.content)
        assert reply is not None, answer.text
        return reply

    async def rows(self, table: str) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.connection.fetch(f"SELECT * FROM {table}")]


@asynccontextmanager
async def line(
    server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    checkout: str = "function",
    connections: int = 4,
    pieces: int = shop.PIECES,
) -> AsyncIterator[Line]:
    loaded = Loaded()
    await shop.load(loaded, pieces=pieces)  # type: ignore[arg-type]
    await fill(server.connection(), loaded.loadings)
    monkeypatch.setenv(CONNECTION_VARIABLE, json.dumps(server.connection()))
    monkeypatch.setenv(CONNECTIONS_VARIABLE, str(connections))
    monkeypatch.setenv(CHECKOUT_VARIABLE, checkout)
    application = make_app()
    connection = await asyncpg.connect(**server.connection())
    try:
        async with (
            application.router.lifespan_context(application),
            httpx.AsyncClient(transport=httpx.ASGITransport(app=application), base_url="http://line") as client,
        ):
            yield Line(client, connection)
    finally:
        await connection.close()

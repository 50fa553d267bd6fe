"""The server on real sockets: files of users and certificates, limits of connections, cancel, silent clients."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import subprocess
from pathlib import Path

import asyncpg
import pytest

from styx.errors import ConfigurationError
from styx.postgres.serving import PostgresOptions, serve_postgres
from styx.postgres.users import user_line
from styx.query.schema import of_app
from styx.query.service import Limits
from styx.query.source import of_directory
from tests.postgres.conversation import lines, startup
from tests.postgres.serving import LIMITS, PASSWORD, serving
from tests.postgres.snapshot_service import SnapshotService
from tests.query.conftest import Filled
from tests.query.shop import app
from tests.transport.conftest import Authority

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


def free_address() -> str:
    """Where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"127.0.0.1:{listening.getsockname()[1]}"


async def connected(port: int, password: str = PASSWORD, **options: object) -> asyncpg.Connection:
    return await asyncpg.connect(
        host="127.0.0.1", port=port, user="ann", password=password, database="shop", **{"ssl": False, **options}
    )


async def received(port: int, *data: bytes) -> list[str]:
    """What the server says to these bytes until it hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(data))
    found = await reader.read()
    writer.close()
    return lines(found)


async def test_users_and_a_certificate(filled: Filled, tmp_path: Path) -> None:
    made = Authority(tmp_path, "shop").files("gateway", "localhost")
    users = tmp_path / "users"
    users.write_text(user_line("ann", "first") + "\n")
    service = SnapshotService(of_directory(filled.directory), of_app(app))
    options = PostgresOptions(free_address(), users, Path(made.certificate), Path(made.key), LIMITS)
    trusted = ssl.create_default_context(cafile=made.authority)
    trusted.check_hostname = False
    async with serve_postgres(service, options) as server:
        port = server.address[1]
        connection = await connected(port, "first", ssl=trusted)
        assert await connection.fetchval("select current_user") == "ann"
        assert server.connections == 1
        with pytest.raises(asyncpg.InvalidPasswordError, match='authentication failed for user "ann"'):
            await connected(port, "second", ssl=trusted)
        with pytest.raises(asyncpg.InvalidAuthorizationSpecificationError, match="TLS only"):
            await connected(port, "first", ssl=False)
        users.write_text(user_line("ann", "second") + "\n")
        await _until_connected(port, "second", trusted)
        await connection.close()
    service.close()


async def _until_connected(port: int, password: str, context: ssl.SSLContext) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await (await connected(port, password, ssl=context)).close()
                return
            except asyncpg.InvalidPasswordError:
                await asyncio.sleep(0.1)


async def test_files_that_are_wrong(tmp_path: Path) -> None:
    users = tmp_path / "users"
    for options, told in (
        (PostgresOptions(free_address(), users), "cannot be read"),
        (PostgresOptions(free_address(), users, users), "a certificate needs its key"),
    ):
        with pytest.raises(ConfigurationError, match=told):
            async with serve_postgres(None, options):  # type: ignore[arg-type]  # it is not asked
                pass
    with pytest.raises(ConfigurationError, match="users"):
        user_line("a\nb", "x")


async def test_too_many_connections(filled: Filled) -> None:
    async with serving(filled.directory, connections_max=1) as server:
        port = server.address[1]
        first = await connected(port)
        with pytest.raises(asyncpg.TooManyConnectionsError):
            await connected(port)
        await first.close()


async def test_a_silent_client_is_hung_up_on(filled: Filled) -> None:
    async with serving(filled.directory, opening_seconds=0.2) as server:
        port = server.address[1]
        told = ["FATAL 57P05: canceling authentication: it has not ended within 0.2 s"]
        assert await received(port) == told
        assert (await received(port, startup({"user": "ann"})))[-1:] == told


async def test_a_key_that_is_not_known_cancels_nothing(filled: Filled) -> None:
    async with serving(filled.directory) as server:
        port = server.address[1]
        connection = await connected(port)
        asks = asyncio.create_task(connection.fetchval("select count(*) from range(3000000) a, range(20) b"))
        for pid in range(1, 4):
            assert await received(port, struct.pack("!iii", 16, 80877102, pid), b"xxxx") == []
        assert await asks == 60_000_000
        await connection.close()


async def test_a_client_that_takes_nothing_is_hung_up_on(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("styx.postgres.connection.TAKING_SECONDS_MAX", 0.3)
    async with serving(filled.directory, limits=Limits(300, 60.0, 10**9)) as server:
        connection = await connected(server.address[1])
        statement = await connection.prepare("select repeat('x', 1000) from range(10000000)")
        connection._transport.pause_reading()
        asks = asyncio.create_task(statement.fetch())
        async with asyncio.timeout(60):
            while server.connections:  # noqa: ASYNC110 - a number
                await asyncio.sleep(0.05)
        connection._transport.abort()
        with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
            await asks
        connection.terminate()


async def test_cancel_ends_the_process_within_a_transaction(filled: Filled) -> None:
    async with serving(filled.directory) as server:
        connection = await connected(server.address[1])
        await connection.execute("begin")
        with pytest.raises(TimeoutError):
            await connection.fetch("select max(a.range + b.range) from range(10000000) a, range(1000000) b", timeout=1)
        words = ["ps", "--ppid", str(os.getpid()), "-o", "args"]
        ran = await asyncio.to_thread(subprocess.run, words, capture_output=True, check=False)
        assert b"sql_process" not in ran.stdout
        await connection.execute("rollback")
        assert await connection.fetchval("select 5") == 5
        await connection.close()


async def test_the_server_s_end_is_told(filled: Filled) -> None:
    async with serving(filled.directory) as server:
        connection = await connected(server.address[1])
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)):
        await connection.fetchval("select 1")

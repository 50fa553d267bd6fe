"""A port that speaks PostgreSQL's protocol: it accepts connections, bounds how many there are and how long their
beginning may take, and passes requests to cancel on to the connection that they are for.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from styx.postgres.connection import Connection
from styx.postgres.effects import Opening
from styx.postgres.scram import Verifier, nobody
from styx.postgres.sql_errors import QUERY_CANCELED, TOO_LATE, TOO_MANY_CONNECTIONS, SqlError
from styx.postgres.wire import error_response
from styx.query.service import Limits, QueryService

CONNECTIONS_MAX: Final = 100
"""Connections of clients that have proved themselves."""
OPENING_MAX: Final = 64
"""Connections at their beginning."""
OPENING_SECONDS_MAX: Final = 10.0
"""For the beginning of a connection: TLS and the proof of who it is."""
BACKLOG_MAX: Final = 256
WRITE_BYTES_MAX: Final = 2**18
"""Of answers that a client has not taken yet; its query waits."""
SECRET_BYTES: Final = 32
NONCE_BYTES: Final = 18

_log = logging.getLogger("styx.postgres")


@dataclass
class Tls:
    """`certificate_hash`: for channel binding, as RFC 5929 says for tls-server-end-point; None: it is not offered."""

    context: ssl.SSLContext
    certificate_hash: bytes | None = None


class PostgresServer:
    """Serves queries of a service. `users`: gives the verifiers by name at each connection, so that it may change.

    To be used as an async context manager; `address` is where it listens.
    """

    def __init__(
        self,
        service: QueryService,
        users: Callable[[], Mapping[str, Verifier]],
        host: str,
        port: int,
        *,
        limits: Limits,
        tls: Tls | None = None,
        connections_max: int = CONNECTIONS_MAX,
        opening_seconds: float = OPENING_SECONDS_MAX,
    ) -> None:
        self._service = service
        self._users = users
        self._host, self._port = host, port
        self._limits = limits
        self._tls = tls
        self._connections_max = connections_max
        self._opening_seconds = opening_seconds
        self._unknown_key = secrets.token_bytes(SECRET_BYTES)  # salts of users that do not exist
        self._by_pid: dict[int, tuple[bytes, Connection]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._opening = 0
        self._last_pid = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._accepted, self._host, self._port, backlog=BACKLOG_MAX, limit=2**16, ssl_handshake_timeout=None
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for _secret, connection in list(self._by_pid.values()):
            await connection.shut_down()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        found = self._server.sockets[0].getsockname()
        return str(found[0]), int(found[1])

    @property
    def connections(self) -> int:
        """Connections of clients that have proved themselves."""
        return sum(bool(each.user) for _, each in self._by_pid.values())

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, ssl.SSLError, TimeoutError):
            pass  # the client has gone, or was too slow
        except asyncio.CancelledError:
            pass  # the server ends
        finally:
            self._tasks.discard(task)
            writer.transport.abort() if writer.is_closing() else writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.set_write_buffer_limits(high=WRITE_BYTES_MAX)
        if self._opening >= OPENING_MAX or len(self._by_pid) >= self._connections_max + OPENING_MAX:
            self._refuse(writer)
            return
        pid, secret = self._new_pid(), secrets.token_bytes(SECRET_BYTES)
        connection = Connection(reader, writer, self._service, self._limits, self._tls.context if self._tls else None)
        self._by_pid[pid] = (secret, connection)
        self._opening += 1
        opens = True

        def opened() -> None:
            nonlocal opens
            if opens:
                opens = False
                self._opening -= 1
            limit.reschedule(None)
            if self.connections > self._connections_max:
                raise SqlError(TOO_MANY_CONNECTIONS, "sorry, too many clients already")

        opening = Opening(
            pid,
            secret,
            base64.b64encode(secrets.token_bytes(NONCE_BYTES)).decode(),
            self._verifier_of,
            self._tls is not None,
            self._tls.certificate_hash if self._tls else None,
        )
        try:
            async with asyncio.timeout(self._opening_seconds) as limit:
                await connection.run(opening, self._cancel, opened)
        except SqlError as error:
            writer.write(error_response(error, "FATAL"))
        except TimeoutError:
            late = SqlError(TOO_LATE, f"canceling authentication: it has not ended within {self._opening_seconds:g} s")
            writer.write(error_response(late, "FATAL"))
        finally:
            del self._by_pid[pid]
            self._opening -= opens

    def _refuse(self, writer: asyncio.StreamWriter) -> None:
        writer.write(error_response(SqlError(TOO_MANY_CONNECTIONS, "sorry, too many clients already"), "FATAL"))

    def _new_pid(self) -> int:
        while True:
            self._last_pid = self._last_pid % (2**31 - 1) + 1
            if self._last_pid not in self._by_pid:
                return self._last_pid

    def _verifier_of(self, name: str) -> Verifier:
        return self._users().get(name) or nobody(name, self._unknown_key)

    def _cancel(self, pid: int, secret: bytes) -> None:
        """Ends the query of the connection whose key this is; says nothing, whoever asks."""
        found = self._by_pid.get(pid)
        if found is None or len(secret) not in (4, SECRET_BYTES):
            return
        own, connection = found
        if hmac.compare_digest(own[: len(secret)], secret):
            connection.interrupt(SqlError(QUERY_CANCELED, "canceling statement due to user request"))

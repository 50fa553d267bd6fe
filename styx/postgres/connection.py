"""Drives one session over a connection: receives and sends bytes, runs its queries in the service, and ends them when
they are cancelled or the client leaves.

A query goes on only as fast as the client takes its rows: one batch is ahead at most.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from styx.postgres.effects import Authenticated, CancelQuery, Next, Open, Opening, Receive, Send, StartTls, Stop
from styx.postgres.session import session
from styx.postgres.sql_errors import (
    ADMIN_SHUTDOWN,
    INTERNAL,
    OUT_OF_MEMORY,
    QUERY_CANCELED,
    TOO_LARGE,
    TOO_MANY_CONNECTIONS,
    SqlError,
    of_duckdb,
)
from styx.postgres.wire import error_response
from styx.query.service import Answer, Asked, Limits, QueryFailed, QueryRefused, QueryService

READ_BYTES: Final = 2**16
SEND_BYTES: Final = 2**16
"""Bytes that are collected before they are sent."""
AHEAD_BYTES_MAX: Final = 2**20
"""Bytes of a client that are taken while its query runs."""
TAKING_SECONDS_MAX: Final = 300.0
"""How long a client may take nothing of an answer: it would hold its query's process."""


class RunningQuery:
    """A query in a task of its own, which holds the service's context and hands over one batch after the other."""

    def __init__(self, service: QueryService, asked: Asked, limits: Limits) -> None:
        self._batches: asyncio.Queue[Any] = asyncio.Queue(maxsize=1)
        self._task = asyncio.create_task(self._run(service, asked, limits))

    async def _run(self, service: QueryService, asked: Asked, limits: Limits) -> None:
        try:
            async with service.run(asked, limits) as answer:
                await self._batches.put(answer)
                async for batch in answer.batches:
                    await self._batches.put(batch)
            await self._batches.put(None)
        except QueryFailed as failed:
            await self._batches.put(_told(failed, limits))
        except QueryRefused as refused:
            await self._batches.put(SqlError(TOO_MANY_CONNECTIONS, str(refused)))
        except Exception as error:  # noqa: BLE001 - of whatever holds the tables; it costs this query only
            await self._batches.put(SqlError(INTERNAL, f"the query failed: {type(error).__name__}: {error}"))

    async def next(self) -> Any:
        """The answer first, then its batches, then None; raises `SqlError`."""
        found = await self._batches.get()
        if isinstance(found, SqlError):
            raise found
        return found

    async def stop(self) -> None:
        """Ends it; it has ended when this returns."""
        self._task.cancel()
        await asyncio.wait([self._task])


def _told(failed: QueryFailed, limits: Limits) -> SqlError:
    match failed.cause:
        case "memory":
            return SqlError(OUT_OF_MEMORY, f"the query needs more than {limits.memory_mib} MiB of memory")
        case "seconds":
            text = f"canceling statement due to statement timeout: it has not ended within {limits.seconds:g} s"
            return SqlError(QUERY_CANCELED, text)
        case "rows":
            hint = "Ask for fewer with LIMIT, or for sums."
            return SqlError(TOO_LARGE, f"the result has more than {limits.rows} rows", hint=hint)
    return of_duckdb(str(failed))


class Connection:
    """One client's connection. `run` returns when it has ended."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        service: QueryService,
        limits: Limits,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._service = service
        self._limits = limits
        self._tls = tls
        self._queries: dict[int, RunningQuery] = {}
        self._ahead = bytearray()  # what has come while a query ran
        self._out = bytearray()
        self._interrupt: SqlError | None = None
        self._waits: asyncio.Future[None] | None = None  # while a query runs, to interrupt it
        self._receiving = False
        self.user = ""

    async def run(
        self, opening: Opening, cancel: Callable[[int, bytes], None], authenticated: Callable[[], None]
    ) -> None:
        """Serves the client. `cancel` gets another connection's key; `authenticated` is called once it is."""
        steps = session(opening)
        answer: Any = None
        error: SqlError | None = None
        try:
            while True:
                try:
                    effect = steps.send(answer) if error is None else steps.throw(error)
                except StopIteration:
                    break
                answer, error = None, None
                match effect:
                    case Send(data):
                        self._out += data
                        if len(self._out) >= SEND_BYTES:
                            await self._flush()
                    case Receive():
                        answer = await self._receive()
                    case StartTls():
                        await self._start_tls()
                    case Authenticated(user):
                        self.user = user
                        authenticated()
                    case CancelQuery(pid, secret):
                        cancel(pid, secret)
                    case _:
                        try:
                            answer = await self._query(effect)
                        except SqlError as raised:
                            error = raised
            await self._flush()
        finally:
            steps.close()
            for each in list(self._queries):
                await self._stop(each)

    def interrupt(self, error: SqlError) -> bool:
        """Ends the query that runs with this error; False if none runs."""
        if self._waits is None or self._waits.done():
            return False
        self._interrupt = error
        self._waits.set_result(None)
        return True

    async def _query(self, effect: Open | Next | Stop) -> Any:
        await self._flush()
        match effect:
            case Open(number, asked, seconds):
                limits = self._limits
                if seconds is not None:
                    limits = replace(limits, seconds=min(seconds, limits.seconds))
                self._queries[number] = RunningQuery(self._service, asked, limits)
                try:
                    found: Answer = await self._watched(number)
                    return found
                except BaseException:
                    await self._stop(number)
                    raise
            case Next(number):
                return await self._watched(number)
            case Stop(number):
                await self._stop(number)
        return None

    async def _stop(self, number: int) -> None:
        query = self._queries.pop(number, None)
        if query is not None:
            await query.stop()

    async def _watched(self, number: int) -> Any:
        """The next of a query, unless somebody interrupts it or the client leaves."""
        waits = self._waits = asyncio.get_running_loop().create_future()
        wanted = asyncio.create_task(self._queries[number].next())
        coming: asyncio.Task[bytes] | None = None
        try:
            while not wanted.done():
                if coming is None and len(self._ahead) < AHEAD_BYTES_MAX:
                    coming = asyncio.create_task(self._reader.read(READ_BYTES))
                awaited = [each for each in (wanted, waits, coming) if each is not None]
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
                if coming is not None and coming.done():
                    data, coming = coming.result(), None
                    self._ahead += data
                    if not data:
                        raise ConnectionResetError
                if waits.done():
                    assert self._interrupt is not None
                    raise self._interrupt
            return wanted.result()
        finally:
            self._waits = None
            for task in (wanted, coming):
                if task is not None and not task.done():
                    task.cancel()
                    await asyncio.wait([task])

    async def _receive(self) -> bytes:
        await self._flush()
        if self._ahead:
            data = bytes(self._ahead)
            self._ahead.clear()
            return data
        self._receiving = True
        try:
            return await self._reader.read(READ_BYTES)
        finally:
            self._receiving = False

    async def _flush(self) -> None:
        """Sends what was collected; waits for a client that does not take it."""
        if self._out:
            self._writer.write(bytes(self._out))
            self._out.clear()
            try:
                async with asyncio.timeout(TAKING_SECONDS_MAX):
                    await self._writer.drain()
            except TimeoutError:
                raise ConnectionAbortedError("the client takes no answer") from None

    async def _start_tls(self) -> None:
        assert self._tls is not None
        await self._flush()
        await self._writer.start_tls(self._tls)

    async def shut_down(self) -> None:
        """Tells the client that the server ends, if it is not amid a message, and hangs up."""
        error = SqlError(ADMIN_SHUTDOWN, "terminating connection due to administrator command")
        if self._receiving and self.user:
            with suppress(ConnectionError):
                self._writer.write(error_response(error, "FATAL"))
        self._writer.close()

"""A connection of PostgreSQL's protocol, version 3.0 and 3.2, from its first byte to its last. Pure: bytes in, effects
out; queries run elsewhere (PostgreSQL's documentation, "Message Flow").

It is read-only, and each query sees all tables at one moment: a transaction holds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from styx.postgres import wire
from styx.postgres.commands import command
from styx.postgres.effects import Opening, Send, Steps
from styx.postgres.lexer import Token, source, statements
from styx.postgres.running import Running
from styx.postgres.settings import Settings
from styx.postgres.sql_errors import FEATURE_NOT_SUPPORTED, SYNTAX_ERROR, ProtocolError, SqlError
from styx.postgres.startup import Client, Incoming, Left, settings_of, startup
from styx.postgres.statements import Portal

_EXTENDED: Final = (b"P", b"B", b"D", b"E", b"C")


def session(opening: Opening) -> Steps:
    """The whole connection; ends when it is to be closed."""
    incoming = Incoming()
    try:
        client = yield from startup(incoming, opening)
        if client is None:
            return
        settings = Settings(client.user)
        for name, value in settings_of(client).items():
            settings.set(name, value)
        reported = [wire.parameter_status(*each) for each in settings.reported().items()]
        yield Send(b"".join(reported) + wire.ready("I"))
        yield from _Session(incoming, opening, client, settings).serve()
    except Left:
        pass
    except SqlError as error:
        yield Send(wire.error_response(error, "FATAL"))


class _Session:
    """A client that has proved itself, and what it has prepared."""

    def __init__(self, incoming: Incoming, opening: Opening, client: Client, settings: Settings) -> None:
        self._incoming = incoming
        self._running = Running(client, settings, opening.pid)
        self._skips = False  # everything up to the next Sync, because something before it has failed

    def serve(self) -> Steps:
        """Answers messages until the client ends the connection; raises `Left` and `ProtocolError`."""
        while True:
            kind, data = yield from self._incoming.message()
            if kind == b"X":
                return
            yield from self._answer(kind, data)

    def _answer(self, kind: bytes, data: bytes) -> Steps:
        if kind == b"S":
            wire.Reader(data).end()
            self._skips = False
            yield from self._running.settle()
            yield Send(wire.ready(self._running.transaction.status))
        elif self._skips:
            pass
        elif kind == b"Q":
            yield from self._simple(data)
        elif kind == b"H":
            wire.Reader(data).end()
        elif kind in _EXTENDED:
            yield from self._extended(kind, data)
        elif kind == b"F":
            yield from self._failed(SqlError(FEATURE_NOT_SUPPORTED, "function calls by messages are not supported"))
            yield Send(wire.ready(self._running.transaction.status))
        elif kind not in (b"d", b"c", b"f"):  # what is left of a COPY that failed is passed over
            raise ProtocolError(f"invalid frontend message type {kind[0]}")

    def _failed(self, error: SqlError) -> Steps:
        self._running.transaction.failed()
        yield Send(wire.error_response(error))

    # Simple queries ------------------------------------------------------------------------------------------------

    def _simple(self, data: bytes) -> Steps:
        """Runs the statements of a text one after the other; the first that fails ends them."""
        try:
            sql = wire.read_query(data)
            found = statements(sql)
            if not found:
                yield Send(wire.EMPTY_QUERY)
            for each in found:
                yield from self._statement(sql, each)
        except ProtocolError:
            raise
        except SqlError as error:
            yield from self._failed(error)
        yield from self._running.settle()
        yield Send(wire.ready(self._running.transaction.status))

    def _statement(self, sql: str, tokens: Sequence[Token]) -> Steps:
        running = self._running
        portal = running.portal("", command(sql, tokens), [], ())
        try:
            yield from running.open(portal)
            if portal.columns is not None:
                yield Send(portal.columns.described(portal.formats))
            yield from running.execute(portal, 0)
        except SqlError:
            yield from running.close(portal)
            raise
        yield from running.close(portal)

    # Extended queries ------------------------------------------------------------------------------------------------

    def _extended(self, kind: bytes, data: bytes) -> Steps:
        steps = {b"P": self._parse, b"B": self._bind, b"D": self._describe, b"E": self._execute, b"C": self._close}
        try:
            yield from steps[kind](data)
        except ProtocolError:
            raise
        except SqlError as error:
            self._skips = True
            yield from self._failed(error)

    def _parse(self, data: bytes) -> Steps:
        asked = wire.read_parse(data)
        found = statements(asked.sql)
        if len(found) > 1:
            raise SqlError(SYNTAX_ERROR, "cannot insert multiple commands into a prepared statement")
        wanted = command(asked.sql, found[0]) if found else None
        sql = source(asked.sql, found[0]) if found else ""
        self._running.prepare(asked.name, sql, wanted, asked.types)
        yield Send(wire.PARSED)

    def _bind(self, data: bytes) -> Steps:
        yield from self._running.bind(wire.read_bind(data))
        yield Send(wire.BOUND)

    def _describe(self, data: bytes) -> Steps:
        asked = wire.read_named(data)
        if asked.kind == "S":
            statement = self._running.statement(asked.name)
            yield from self._running.describe(statement)
            columns, formats = statement.columns, []
            yield Send(wire.parameter_description(statement.types))
        else:
            portal = self._running.open_portal(asked.name)
            yield from self._running.open(portal)
            columns, formats = portal.columns, list(portal.formats)
        yield Send(wire.NO_DATA if columns is None else columns.described(formats))

    def _execute(self, data: bytes) -> Steps:
        asked = wire.read_execute(data)
        portal: Portal = self._running.open_portal(asked.portal)
        yield from self._running.open(portal)
        yield from self._running.execute(portal, max(asked.rows, 0))

    def _close(self, data: bytes) -> Steps:
        asked = wire.read_named(data)
        if asked.kind == "S":
            self._running.deallocate(asked.name)
        else:
            yield from self._running.close_portal(asked.name)
        yield Send(wire.CLOSED)

"""What a session has prepared and what runs in it: statements, portals, cursors, and the commands that it answers
itself. Pure, as `session`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from styx.postgres import commands, wire
from styx.postgres.catalog import Asker
from styx.postgres.commands import Command
from styx.postgres.decode import decode
from styx.postgres.effects import Next, Open, Send, Steps, Stop
from styx.postgres.encode import check_formats, data_rows, static_rows
from styx.postgres.local import local_answer
from styx.postgres.rewriting import list_parameters
from styx.postgres.settings import Settings
from styx.postgres.sql_errors import (
    DUPLICATE_CURSOR,
    DUPLICATE_STATEMENT,
    FEATURE_NOT_SUPPORTED,
    LIMIT_EXCEEDED,
    NO_CURSOR,
    NO_STATEMENT,
    NO_TRANSACTION,
    PROTOCOL_VIOLATION,
    SqlError,
)
from styx.postgres.startup import Client
from styx.postgres.statements import (
    PORTALS_MAX,
    STATEMENTS_MAX,
    TEXT_MAX,
    Portal,
    Statement,
    Static,
    columns_of,
    static_columns,
)
from styx.postgres.transaction import IDLE, Transaction
from styx.postgres.types import UNKNOWN_OID, parameter_oid
from styx.query.service import PARAMETER_TYPES, Asked


class Running:
    """The statements, portals, settings and transaction of one session."""

    def __init__(self, client: Client, settings: Settings, pid: int) -> None:
        self.settings = settings
        self.transaction = Transaction()
        self._asker = Asker(client.user, client.database, pid, settings)
        self._statements: dict[str, Statement] = {}
        self._portals: dict[str, Portal] = {}
        self._numbers = 0

    # Statements ------------------------------------------------------------------------------------------------------

    def prepare(self, name: str, sql: str, wanted: Command | None, types: Sequence[int]) -> None:
        """Keeps a statement; raises `SqlError`. The unnamed one gives way."""
        self.transaction.check(ends=_ends(wanted))
        if name and name in self._statements:
            raise SqlError(DUPLICATE_STATEMENT, f'prepared statement "{name[:63]}" already exists')
        if len(self._statements) >= STATEMENTS_MAX and name not in self._statements:
            raise SqlError(LIMIT_EXCEEDED, f"a connection has at most {STATEMENTS_MAX} prepared statements")
        if sum(len(each.sql) for each in self._statements.values()) + len(sql) > TEXT_MAX:
            raise SqlError(LIMIT_EXCEEDED, f"prepared statements of a connection have at most {TEXT_MAX} characters")
        parameters = _parameters(wanted)
        known = [each if each != UNKNOWN_OID else 0 for each in types][:parameters]
        self._statements[name] = Statement(sql, wanted, known + [0] * (parameters - len(known)))

    def statement(self, name: str) -> Statement:
        """A prepared one; raises `SqlError`."""
        if name not in self._statements:
            what = f'prepared statement "{name[:63]}"' if name else "unnamed prepared statement"
            raise SqlError(NO_STATEMENT, f"{what} does not exist")
        return self._statements[name]

    def deallocate(self, name: str) -> None:
        """Forgets a prepared statement, if there is one."""
        self._statements.pop(name, None)

    def describe(self, statement: Statement) -> Steps:
        """Finds out a statement's columns and the types of its parameters."""
        if statement.described:
            return
        self.transaction.check(ends=_ends(statement.command))
        wanted = statement.command
        static = self._static(wanted)
        if static is not None:
            statement.columns = static_columns(static)
        elif isinstance(wanted, commands.Fetch):
            statement.columns = self._cursor(wanted.name).columns if wanted.verb == "fetch" else None
        elif isinstance(wanted, commands.Query):
            yield from self._describe_query(statement, wanted)
        statement.described = not isinstance(wanted, commands.Fetch)

    def _describe_query(self, statement: Statement, wanted: commands.Query) -> Steps:
        number = self._number()
        expressions = {at: decode(None, oid, 0).expression for at, oid in enumerate(statement.types, 1) if oid}
        asked = self._asker.asked(wanted, expressions, (), describe=True)
        answer = yield Open(number, asked, None)
        yield Stop(number)
        statement.columns = columns_of(answer.schema, catalog=asked.catalog)
        found = msgspec.json.decode(answer.schema.metadata[PARAMETER_TYPES], type=list[str])
        # The inferred type of a parameter whose type the client has said is that of the cast around it.
        statement.types = [
            oid or parameter_oid(name, catalog=asked.catalog)
            for oid, name in zip(statement.types, found + [""] * len(statement.types), strict=False)
        ]

    # Portals ---------------------------------------------------------------------------------------------------------

    def bind(self, asked: wire.Bind) -> Steps:
        """Makes a portal of a statement; raises `SqlError`."""
        statement = self.statement(asked.statement)
        if len(asked.values) != len(statement.types):
            raise SqlError(
                PROTOCOL_VIOLATION,
                f"bind message supplies {len(asked.values)} parameters, but prepared statement "
                f'"{asked.statement[:63]}" requires {len(statement.types)}',
            )
        formats = [wire.format_of(asked.formats, at) for at in range(len(asked.values))]
        lists = list_parameters(statement.command.tokens) if isinstance(statement.command, commands.Query) else ()
        if any(not oid and (formats[at] or at + 1 in lists) for at, oid in enumerate(statement.types)):
            yield from self.describe(statement)  # what came says nothing without the type
        if asked.portal and asked.portal in self._portals:
            raise SqlError(DUPLICATE_CURSOR, f'cursor "{asked.portal[:63]}" already exists')
        yield from self.close_portal(asked.portal)
        decoded = [decode(*each) for each in zip(asked.values, statement.types, formats, strict=True)]
        self.portal(asked.portal, statement.command, decoded, asked.results)

    def portal(self, name: str, wanted: Command | None, parameters: Sequence[Any], formats: Sequence[int]) -> Portal:
        """A new portal; raises `SqlError`."""
        self.transaction.check(ends=_ends(wanted))
        if len(self._portals) >= PORTALS_MAX:
            raise SqlError(LIMIT_EXCEEDED, f"a connection has at most {PORTALS_MAX} open portals")
        asked: Asked | None = None
        if isinstance(wanted, commands.Declare):
            asked = self._asked(wanted.query, parameters)
        elif isinstance(wanted, commands.Query):
            asked = self._asked(wanted, parameters)
        found = Portal(name, wanted, asked, list(formats), static=self._static(wanted))
        self._portals[name] = found
        return found

    def _asked(self, wanted: commands.Query, parameters: Sequence[Any]) -> Asked:
        if not parameters and _parameters(wanted):
            raise SqlError("42P02", "there is no parameter $1")
        expressions = {at: each.expression for at, each in enumerate(parameters, 1)}
        return self._asker.asked(wanted, expressions, [each.value for each in parameters])

    def open_portal(self, name: str) -> Portal:
        """A portal that there is; raises `SqlError`."""
        if name not in self._portals:
            raise SqlError(NO_CURSOR, f'portal "{name[:63]}" does not exist')
        return self._portals[name]

    def open(self, portal: Portal) -> Steps:
        """Begins what gives the portal's rows, if that has not begun: then its columns are known."""
        wanted = portal.command
        if portal.columns is not None or portal.ended:
            return
        if portal.static is not None:
            portal.columns = static_columns(portal.static)
            check_formats(portal.columns.types, portal.formats)
            portal.rows = static_rows(portal.static.rows, portal.columns.types, portal.formats)
        elif isinstance(wanted, commands.Fetch):
            cursor = self._cursor(wanted.name)
            portal.columns = cursor.columns if wanted.verb == "fetch" else None
        elif isinstance(wanted, commands.Query):
            yield from self._begin(portal)

    def _begin(self, portal: Portal) -> Steps:
        assert portal.asked is not None
        number = self._number()
        answer = yield Open(number, portal.asked, self.settings.statement_seconds())
        portal.number, portal.columns = number, columns_of(answer.schema, catalog=portal.asked.catalog)
        self.settings.epoch = str(answer.epoch)
        check_formats(portal.columns.types, portal.formats)

    def execute(self, portal: Portal, rows_max: int) -> Steps:
        """Sends the portal's rows, `rows_max` at most and 0 for all, and how it ended."""
        wanted = portal.command
        self.transaction.check(ends=_ends(wanted))
        if wanted is None:
            yield Send(wire.EMPTY_QUERY)
        elif isinstance(wanted, commands.Query):
            count, ended = yield from self._rows(portal, rows_max)
            yield Send(wire.complete(f"SELECT {count}") if ended else wire.SUSPENDED)
        elif portal.static is not None:
            yield Send(b"".join(portal.rows) + wire.complete("SHOW"))
            portal.rows = []
            portal.ended = True
        elif portal.ended:
            raise SqlError("55000", f'portal "{portal.name[:63]}" cannot be run')
        else:
            portal.ended = True
            yield from self._do(portal, wanted)

    def _rows(self, portal: Portal, rows_max: int) -> Steps:
        """How many were sent, and whether they were the last."""
        count = 0
        while True:
            if not portal.rows and not portal.ended:
                yield from self._more(portal)
            if portal.ended and not portal.rows:
                return count, True
            some = portal.rows[: rows_max - count] if rows_max else portal.rows
            portal.rows = portal.rows[len(some) :]
            count += len(some)
            yield Send(b"".join(some))
            if count == rows_max:
                return count, False

    def _more(self, portal: Portal) -> Steps:
        if portal.static is not None:
            portal.ended = True
            return
        assert portal.columns is not None
        try:
            batch = yield Next(portal.number)
            portal.rows = [] if batch is None else data_rows(batch, portal.columns.types, portal.formats)
        except SqlError:
            portal.ended = True
            yield from self._stop(portal)  # at once, not only when the transaction ends
            raise
        if batch is None:
            portal.ended = True
            yield from self._stop(portal)

    # The end of portals ----------------------------------------------------------------------------------------------

    def settle(self) -> Steps:
        """Ends what does not live longer than a transaction, if none is open."""
        if self.transaction.status == IDLE:
            for portal in [each for each in self._portals.values() if not each.hold]:
                yield from self.close(portal)
        elif "" in self._portals and self._portals[""].ended:
            yield from self.close(self._portals[""])

    def close_portal(self, name: str) -> Steps:
        """Ends the portal, if there is one."""
        if name in self._portals:
            yield from self.close(self._portals[name])

    def close(self, portal: Portal) -> Steps:
        """Ends a portal, and its query."""
        self.forget(portal)
        portal.ended, portal.rows = True, []
        yield from self._stop(portal)

    def forget(self, portal: Portal) -> None:
        """The portal is none of the session's any more."""
        if self._portals.get(portal.name) is portal:
            del self._portals[portal.name]

    def _stop(self, portal: Portal) -> Steps:
        number, portal.number = portal.number, 0
        if number:
            yield Stop(number)

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # Commands --------------------------------------------------------------------------------------------------------

    def _static(self, wanted: Command | None) -> Static | None:
        """The rows of a command that gives some without a query."""
        if isinstance(wanted, commands.Show):
            if wanted.name is None:
                columns = [("name", "VARCHAR"), ("setting", "VARCHAR"), ("description", "VARCHAR")]
                return Static(columns, [(name, value, "") for name, value in self.settings.all()])
            return Static([(wanted.name, "VARCHAR")], [(self.settings.show(wanted.name),)])
        if isinstance(wanted, commands.Query):
            return local_answer(wanted, self._asker)
        return None

    def _do(self, portal: Portal, wanted: Command) -> Steps:
        match wanted:
            case commands.Begin():
                yield from self._told("BEGIN", self.transaction.begin())
            case commands.End(commits, chain):
                tag, warning = self.transaction.end(commits=commits, chain=chain)
                yield from self._told(tag, warning)
            case commands.Savepoint(verb, name):
                yield from self._told(self.transaction.savepoint(verb, name))
            case commands.Set(name, value):
                yield from self._set(name, value)
            case commands.Reset(name):
                self.settings.reset(name)
                yield from self._told("RESET")
            case commands.Discard(what):
                yield from self._discard(what)
            case commands.Deallocate(name):
                yield from self._deallocate(name)
            case commands.Nothing(tag):
                yield from self._told(tag)
            case _:
                yield from self._do_cursor(portal, wanted)

    def _do_cursor(self, portal: Portal, wanted: Command) -> Steps:
        match wanted:
            case commands.Declare():
                yield from self._declare(portal, wanted)
            case commands.Fetch():
                yield from self._fetch(portal, wanted)
            case commands.Close(name):
                if name is not None:
                    self._cursor(name)
                for each in [e for e in self._portals.values() if e.name == name or (name is None and e.name)]:
                    yield from self.close(each)
                yield from self._told("CLOSE CURSOR ALL" if name is None else "CLOSE CURSOR")

    def _told(self, tag: str, warning: str = "") -> Steps:
        yield Send((wire.notice(warning) if warning else b"") + wire.complete(tag))

    def _set(self, name: str, value: str) -> Steps:
        before = self.settings.reported()
        warning = self.settings.set(name, value) if name else ""
        changed = [each for each in self.settings.reported().items() if each not in before.items()]
        yield Send(b"".join(wire.parameter_status(*each) for each in changed))
        yield from self._told("SET", warning)

    def _discard(self, what: str) -> Steps:
        if what == "all":
            if self.transaction.status != IDLE:
                raise SqlError("25001", "DISCARD ALL cannot run inside a transaction block")
            self._statements.clear()
            self.settings.reset(None)
            for portal in list(self._portals.values()):
                yield from self.close(portal)
        yield from self._told(f"DISCARD {what.upper()}")

    def _deallocate(self, name: str | None) -> Steps:
        if name is None:
            self._statements.clear()
        else:
            self.statement(name)
            self.deallocate(name)
        yield from self._told("DEALLOCATE ALL" if name is None else "DEALLOCATE")

    def _cursor(self, name: str) -> Portal:
        if name not in self._portals:
            raise SqlError(NO_CURSOR, f'cursor "{name[:63]}" does not exist')
        return self._portals[name]

    def _declare(self, portal: Portal, wanted: commands.Declare) -> Steps:
        if self.transaction.status == IDLE and not wanted.hold:
            raise SqlError(NO_TRANSACTION, "DECLARE CURSOR can only be used in transaction blocks")
        if wanted.name in self._portals:
            raise SqlError(DUPLICATE_CURSOR, f'cursor "{wanted.name[:63]}" already exists')
        cursor = Portal(
            wanted.name, wanted.query, portal.asked, [], static=self._static(wanted.query), hold=wanted.hold
        )
        if len(self._portals) >= PORTALS_MAX:
            raise SqlError(LIMIT_EXCEEDED, f"a connection has at most {PORTALS_MAX} open portals")
        yield from self.open(cursor)
        self._portals[wanted.name] = cursor
        yield from self._told("DECLARE CURSOR")

    def _fetch(self, portal: Portal, wanted: commands.Fetch) -> Steps:
        cursor = self._cursor(wanted.name)
        if wanted.verb == "fetch":
            _give_format(cursor, portal.formats)
            count, _ = yield from self._rows(cursor, wanted.rows)
        else:
            count = yield from self._passed(cursor, wanted.rows)
        yield from self._told(f"{wanted.verb.upper()} {count}")

    def _passed(self, cursor: Portal, rows_max: int) -> Steps:
        """Passes rows without sending them; how many."""
        count = 0
        while not rows_max or count < rows_max:
            if not cursor.rows and not cursor.ended:
                yield from self._more(cursor)
            if not cursor.rows:
                if cursor.ended:
                    break
                continue
            some = cursor.rows[: rows_max - count] if rows_max else cursor.rows
            cursor.rows = cursor.rows[len(some) :]
            count += len(some)
        return count


def _give_format(cursor: Portal, formats: Sequence[int]) -> None:
    """Makes the cursor's rows have the formats of who fetches them; raises `SqlError` once rows have others."""
    if list(formats) == list(cursor.formats):
        return
    if cursor.rows and cursor.static is None:
        raise SqlError(FEATURE_NOT_SUPPORTED, "all that is fetched from a cursor has the same format")
    assert cursor.columns is not None
    check_formats(cursor.columns.types, formats)
    cursor.formats = formats
    if cursor.rows and cursor.static is not None:
        cursor.rows = static_rows(cursor.static.rows, cursor.columns.types, formats)


def _ends(wanted: Command | None) -> bool:
    """Whether a command may run in a transaction that has failed."""
    return isinstance(wanted, commands.End) or (isinstance(wanted, commands.Savepoint) and wanted.verb == "rollback")


def _parameters(wanted: Command | None) -> int:
    """The highest number of a parameter."""
    query = wanted.query if isinstance(wanted, commands.Declare) else wanted
    if not isinstance(query, commands.Query):
        return 0
    highest = max((int(each.text[1:]) for each in query.tokens if each.kind == "parameter"), default=0)
    if highest > 65_535:
        raise SqlError(PROTOCOL_VIOLATION, "parameters are $1 to $65535")
    return highest

"""Queries that a session answers itself, because drivers ask them with each connection: a few functions of the session,
such as `select version()`. Anything else in the query, and DuckDB gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from styx.postgres.commands import Query
from styx.postgres.lexer import Token, name_of, string_of
from styx.postgres.sql_errors import SqlError
from styx.postgres.statements import Static

if TYPE_CHECKING:
    from styx.postgres.catalog import Asker

_BARE: Final = {"current_user", "session_user", "user", "current_catalog", "current_schema", "current_role"}
_NAMES: Final[dict[str, Callable[[Asker], Any]]] = {
    "version": lambda asker: asker.version,
    "current_schema": lambda asker: "public",
    "current_database": lambda asker: asker.database,
    "current_catalog": lambda asker: asker.database,
    "current_user": lambda asker: asker.user,
    "current_role": lambda asker: asker.user,
    "session_user": lambda asker: asker.user,
    "user": lambda asker: asker.user,
    "pg_backend_pid": lambda asker: asker.pid,
    "pg_is_in_recovery": lambda asker: True,
    "pg_advisory_unlock_all": lambda asker: None,
    "inet_server_addr": lambda asker: None,
    "inet_server_port": lambda asker: None,
}
_TYPES: Final = {bool: "BOOLEAN", int: "INTEGER", str: "VARCHAR", type(None): "VARCHAR"}


def local_answer(query: Query, asker: Asker) -> Static | None:
    """The row of a query that is nothing but such functions; None for any other."""
    if query.tokens[0].word != "select":
        return None
    names, values, rest = [], [], list(query.tokens[1:])
    while rest:
        read = _item(rest, asker)
        if read is None:
            return None
        name, value, rest = read
        names.append((name, _TYPES[type(value)]))
        values.append(value)
        if rest[:1] and rest[0].text == ",":
            rest = rest[1:]
        elif rest:
            return None
    return Static(names, [values]) if names else None


def _item(tokens: Sequence[Token], asker: Asker) -> tuple[str, Any, list[Token]] | None:
    """A function's name, its value, and the tokens behind it; None if there is something else."""
    rest = list(tokens)
    if [each.word for each in rest[:2]] == ["pg_catalog", "."]:
        rest = rest[2:]
    if not rest or rest[0].kind != "word":
        return None
    name = rest[0].word
    if len(rest) > 1 and rest[1].text == "(":
        end = next((at for at, each in enumerate(rest) if each.text == ")"), None)
        if end is None:
            return None
        arguments, rest = rest[2:end], rest[end + 1 :]
        if name in ("current_setting", "set_config"):
            plain = all(each.kind in ("string", "word") or each.text == "," for each in arguments)
            if not arguments or arguments[0].kind != "string" or not plain:
                return None
            value: Any = _setting(name, arguments, asker)
        elif arguments or name not in _NAMES:
            return None
        else:
            value = _NAMES[name](asker)
    elif name in _BARE:
        value, rest = _NAMES[name](asker), rest[1:]
    else:
        return None
    if rest and rest[0].word == "as" and len(rest) > 1:
        name, rest = name_of(rest[1]), rest[2:]
    elif (
        rest and rest[0].kind in ("word", "quoted") and rest[0].word not in ("from", "where", "union", "order", "limit")
    ):
        name, rest = name_of(rest[0]), rest[1:]
    return name, value, rest


def _setting(name: str, arguments: Sequence[Token], asker: Asker) -> str | None:
    """`current_setting(name[, missing_ok])` and `set_config(name, value, is_local)`."""
    texts = [string_of(each) for each in arguments if each.text != ","]
    if name == "set_config" and len(texts) == 3:
        asker.settings.set(texts[0], texts[1])
        return texts[1]
    try:
        return asker.settings.show(texts[0])
    except SqlError:
        if texts[1:] and texts[1].lower() in ("true", "t"):
            return None
        raise

"""What a statement wants: a query for DuckDB, or one of the commands that a session answers itself, such as BEGIN, SET
and FETCH. What would write is refused here, before any process looks at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from styx.postgres.lexer import Token, name_of, source, string_of
from styx.postgres.settings import check_isolation
from styx.postgres.sql_errors import FEATURE_NOT_SUPPORTED, READ_ONLY, SYNTAX_ERROR, SqlError

QUERIES: Final = frozenset(
    {"select", "with", "values", "table", "from", "describe", "summarize", "pivot", "unpivot", "("}
)
_WRITES: Final = frozenset(
    {
        *("insert", "update", "delete", "merge", "truncate", "create", "alter", "drop", "grant", "revoke", "comment"),
        *("vacuum", "analyze", "reindex", "cluster", "refresh", "lock", "import", "security", "reassign", "replace"),
        *("notify", "attach", "detach", "install", "load", "export", "checkpoint", "upsert", "do", "call"),
    }
)
_ISOLATIONS: Final = {("serializable",), ("repeatable", "read"), ("read", "committed"), ("read", "uncommitted")}
FETCH_ALL: Final = 0


class Query(NamedTuple):
    """A SELECT, or what DuckDB takes for one."""

    sql: str
    tokens: Sequence[Token]


class Begin(NamedTuple):
    """BEGIN, START TRANSACTION."""


class End(NamedTuple):
    """COMMIT or ROLLBACK."""

    commits: bool
    chain: bool


class Savepoint(NamedTuple):
    """`verb`: savepoint, release or rollback."""

    verb: str
    name: str


class Set(NamedTuple):
    """SET; `name` is "" for what has no effect."""

    name: str
    value: str


class Show(NamedTuple):
    """`name`: None for SHOW ALL."""

    name: str | None


class Reset(NamedTuple):
    """`name`: None for RESET ALL."""

    name: str | None


class Discard(NamedTuple):
    """`what`: all, plans, sequences or temp."""

    what: str


class Deallocate(NamedTuple):
    """`name`: None for all."""

    name: str | None


class Declare(NamedTuple):
    """DECLARE … CURSOR FOR a query."""

    name: str
    query: Query
    hold: bool


class Fetch(NamedTuple):
    """FETCH or MOVE forward; `rows` is `FETCH_ALL` or a number above 0."""

    verb: str
    name: str
    rows: int


class Close(NamedTuple):
    """`name`: None for all cursors."""

    name: str | None


class Nothing(NamedTuple):
    """What is accepted, and does nothing: `tag` is the answer."""

    tag: str


Command = (
    Query | Begin | End | Savepoint | Set | Show | Reset | Discard | Deallocate | Declare | Fetch | Close | Nothing
)


def command(sql: str, tokens: Sequence[Token]) -> Command:
    """What the statement of these tokens of `sql` wants; raises `SqlError` for what is not done here."""
    first = tokens[0].word
    words = [each.word for each in tokens[:4]] + [""] * 4
    if first in QUERIES or (first == "show" and words[1] in ("tables", "databases", "schemas")):
        return Query(source(sql, tokens), tokens)
    if first in _WRITES:
        raise SqlError(
            READ_ONLY, f"cannot execute {first.upper()} in a read-only transaction: this server is read-only"
        )
    read = _READ.get(first)
    if read is not None:
        try:
            return read(sql, tokens)
        except IndexError:
            raise SqlError(SYNTAX_ERROR, "syntax error at end of input") from None
    if first in ("copy", "explain", "prepare", "execute"):
        raise SqlError(FEATURE_NOT_SUPPORTED, f"{first.upper()} is not supported")
    raise unexpected(tokens[0])


def unexpected(token: Token) -> SqlError:
    """The error for a token that cannot stand there."""
    return SqlError(SYNTAX_ERROR, f'syntax error at or near "{token.text[:40]}"', position=token.at + 1)


def _begin(sql: str, tokens: Sequence[Token]) -> Command:
    skip = 2 if tokens[0].word == "start" else 1
    if skip == 2 and tokens[1].word != "transaction":
        raise unexpected(tokens[1])
    _check_modes(tokens[skip:])
    return Begin()


def _check_modes(tokens: Sequence[Token]) -> None:
    """Raises `SqlError` for the modes of a transaction that this server does not have."""
    words = [each.word for each in tokens if each.word not in (",", "work", "transaction")]
    if "write" in words:
        raise SqlError(READ_ONLY, "cannot set transaction read-write mode: this server is read-only")
    if "level" in words:
        at = words.index("level") + 1
        check_isolation(" ".join(words[at : at + (1 if words[at : at + 1] == ["serializable"] else 2)]))
    known = {
        "isolation",
        "level",
        "read",
        "only",
        "serializable",
        "repeatable",
        "committed",
        "uncommitted",
        "not",
        "deferrable",
    }
    for token in tokens:
        if token.word not in known | {",", "work", "transaction"}:
            raise unexpected(token)


def _end(sql: str, tokens: Sequence[Token]) -> Command:
    words = [each.word for each in tokens if each.word not in ("work", "transaction")]
    first = words[0]
    if first == "rollback" and words[1:2] == ["to"]:
        return Savepoint("rollback", name_of(tokens[-1]))
    if words[1:2] == ["prepared"]:
        raise SqlError(FEATURE_NOT_SUPPORTED, "prepared transactions are not supported")
    if words[1:] not in ([], ["and", "chain"], ["and", "no", "chain"]):
        raise unexpected(tokens[1])
    return End(first in ("commit", "end"), words[1:] == ["and", "chain"])


def _savepoint(sql: str, tokens: Sequence[Token]) -> Command:
    return Savepoint(tokens[0].word, name_of(tokens[-1] if len(tokens) > 1 else tokens[1]))


def _set(sql: str, tokens: Sequence[Token]) -> Command:
    at = 2 if tokens[1].word in ("session", "local") and len(tokens) > 2 else 1
    rest = tokens[at:]
    words = [each.word for each in rest[:3]] + [""] * 3
    if words[0] in ("transaction", "characteristics"):
        _check_modes([each for each in rest if each.word not in ("characteristics", "as")])
        return Set("", "")
    if words[0] == "constraints":
        return Nothing("SET CONSTRAINTS")
    if words[:2] == ["time", "zone"]:
        value = string_of(rest[2])
        return Set("timezone", "default" if words[2] in ("local", "default") else value)
    if words[0] == "names":
        return Set("client_encoding", string_of(rest[1]))
    if words[0] in ("role", "authorization"):
        if string_of(rest[1]).lower() in ("none", "default"):
            return Set("", "")
        raise SqlError(READ_ONLY, "a session keeps the user that it began with")
    name, rest = _setting(rest)
    if rest[0].word not in ("=", "to"):
        raise unexpected(rest[0])
    return Set(name, _joined(rest[1:]))


def _setting(tokens: Sequence[Token]) -> tuple[str, Sequence[Token]]:
    """A setting's name, which may have points in it, and what is behind."""
    name, at = name_of(tokens[0]), 1
    while len(tokens) > at + 1 and tokens[at].text == ".":
        name, at = f"{name}.{name_of(tokens[at + 1])}", at + 2
    return name, tokens[at:]


def _joined(tokens: Sequence[Token]) -> str:
    if not tokens:
        raise IndexError
    text = ""
    for each in tokens:
        joined = each.text in (",", "-", "+") or text.endswith(("-", "+")) or not text
        text += ("" if joined else " ") + string_of(each)
    return text


def _show(sql: str, tokens: Sequence[Token]) -> Command:
    words = [each.word for each in tokens[1:]]
    if words == ["all"]:
        return Show(None)
    if words == ["transaction", "isolation", "level"]:
        return Show("transaction_isolation")
    if words == ["time", "zone"]:
        return Show("timezone")
    name, rest = _setting(tokens[1:])
    if rest:
        raise unexpected(rest[0])
    return Show(name)


def _reset(sql: str, tokens: Sequence[Token]) -> Command:
    if tokens[1].word == "all":
        return Reset(None)
    if [each.word for each in tokens[1:]] == ["time", "zone"]:
        return Reset("timezone")
    return Reset(_setting(tokens[1:])[0])


def _discard(sql: str, tokens: Sequence[Token]) -> Command:
    what = tokens[1].word
    if what not in ("all", "plans", "sequences", "temp", "temporary"):
        raise unexpected(tokens[1])
    return Discard(what)


def _deallocate(sql: str, tokens: Sequence[Token]) -> Command:
    last = tokens[2 if tokens[1].word == "prepare" else 1]
    return Deallocate(None if last.word == "all" else name_of(last))


def _declare(sql: str, tokens: Sequence[Token]) -> Command:
    words = [each.word for each in tokens]
    at = words.index("for") if "for" in words else len(words)
    if "cursor" not in words[:at] or len(words) < at + 2:
        raise unexpected(tokens[-1])
    query = tokens[at + 1 :]
    if query[0].word not in QUERIES:
        raise unexpected(query[0])
    if "scroll" in words[:at] and "no" not in words[:at]:
        raise SqlError(FEATURE_NOT_SUPPORTED, "cursors go forward only")
    if "binary" in words[:at]:
        raise SqlError(FEATURE_NOT_SUPPORTED, "the format is that of each FETCH, not of a cursor")
    hold = "hold" in words[:at] and "without" not in words[:at]
    return Declare(name_of(tokens[1]), Query(source(sql, query), query), hold)


def _fetch(sql: str, tokens: Sequence[Token]) -> Command:
    verb, name = tokens[0].word, name_of(tokens[-1])
    middle = [each.text.lower() for each in tokens[1:-1] if each.word not in ("from", "in")]
    match [each for each in middle if each != "forward"]:
        case [] | ["next"]:
            rows = 1
        case ["all"]:
            rows = FETCH_ALL
        case [number] if number.isascii() and number.isdigit() and 0 < int(number) < 2**31:
            rows = int(number)
        case _:
            raise SqlError(FEATURE_NOT_SUPPORTED, "cursors go forward only: FETCH NEXT, a number above 0, or ALL")
    return Fetch(verb, name, rows)


def _close(sql: str, tokens: Sequence[Token]) -> Command:
    return Close(None if tokens[1].word == "all" else name_of(tokens[1]))


def _listen(sql: str, tokens: Sequence[Token]) -> Command:
    return Nothing(tokens[0].word.upper())


_READ: Final = {
    "begin": _begin,
    "start": _begin,
    "commit": _end,
    "end": _end,
    "rollback": _end,
    "abort": _end,
    "savepoint": _savepoint,
    "release": _savepoint,
    "set": _set,
    "show": _show,
    "reset": _reset,
    "discard": _discard,
    "deallocate": _deallocate,
    "declare": _declare,
    "fetch": _fetch,
    "move": _fetch,
    "close": _close,
    "listen": _listen,
    "unlisten": _listen,
}

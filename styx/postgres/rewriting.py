"""The few things that PostgreSQL's clients write and DuckDB does not read, written so that it does.

In every query parameters get the casts of their types, the text of `= ANY('{a,b}')` is a list, and a cast to numeric
keeps more than DuckDB's three digits behind the point. In queries about the catalog: names of `pg_catalog` are those of
the shim; `OPERATOR(pg_catalog.~)` is `~`; `COLLATE` goes; `'name'::regclass` is a call of a macro; types and functions
that DuckDB lacks are those that it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from styx.postgres.catalog_views import STANDARD, VIEWS
from styx.postgres.decode import decode
from styx.postgres.lexer import Token, string_of
from styx.postgres.types import BY_NAME
from styx.query.relations import SHIM

_TYPES: Final = {
    "oid": "UINTEGER",
    "name": "VARCHAR",
    "char": "VARCHAR",
    "text": "VARCHAR",
    "regclass": "VARCHAR",
    "regtype": "VARCHAR",
    "regproc": "VARCHAR",
    "regprocedure": "VARCHAR",
    "regrole": "VARCHAR",
    "regnamespace": "VARCHAR",
    "int2vector": "SMALLINT[]",
    "oidvector": "UINTEGER[]",
    "xid": "UINTEGER",
    "aclitem": "VARCHAR",
    "sql_identifier": "VARCHAR",
    "cardinal_number": "INTEGER",
    "character_data": "VARCHAR",
}


_NUMERIC: Final = frozenset({"numeric", "decimal", "dec"})
_CASTS: Final = frozenset({"cast", "try_cast"})
_FUNCTIONS: Final = {"json_build_object": "json_object", "json_agg": "json_group_array"}


class Edit(NamedTuple):
    """`text` in the place of what stands from `begin` to `end`."""

    begin: int
    end: int
    text: str


def for_duckdb(sql: str, tokens: Sequence[Token], expressions: Mapping[int, str], *, catalog: bool) -> str:
    """The statement `sql`, of these tokens, as DuckDB takes it."""
    base = tokens[0].at
    parts, at = [], 0
    for edit in _edits(tokens, expressions, catalog=catalog):
        parts += [sql[at : edit.begin - base], edit.text]
        at = edit.end - base
    return "".join([*parts, sql[at:]])


def _edits(tokens: Sequence[Token], expressions: Mapping[int, str], *, catalog: bool) -> Iterator[Edit]:
    at = 0
    opened: list[str] = []  # the words in front of the parentheses that are open
    while at < len(tokens):
        edit, used = (_of_catalog(tokens, at, expressions) if catalog else None) or (None, 1)
        token = tokens[at]
        if token.word == "(":
            opened.append(tokens[at - 1].word if at else "")
        elif token.word == ")" and opened:
            opened.pop()
        if edit is not None:
            yield edit
        elif token.kind == "string" and _after_any(tokens, at):
            yield Edit(token.at, token.end, _list(token))
        elif token.kind == "parameter":
            yield Edit(token.at, token.end, _parameter(token, expressions))
        elif token.word in _NUMERIC and _is_cast(tokens, at, opened):
            yield Edit(token.at, token.end, BY_NAME["numeric"].cast)
        at += used


def _is_cast(tokens: Sequence[Token], at: int, opened: Sequence[str]) -> bool:
    """Whether a token is the type of a cast, without digits of its own."""
    before = tokens[at - 1].word if at else ""
    behind = tokens[at + 1].word if at + 1 < len(tokens) else ""
    if before == "as" and (not opened or opened[-1] not in _CASTS):
        return False
    return before in ("::", "as") and behind != "("


def _after_any(tokens: Sequence[Token], at: int) -> bool:
    """Whether a token is all that is in the parentheses behind ANY or ALL: then it is a list."""
    before, behind = tokens[max(at - 2, 0) : at], tokens[at + 1 : at + 2]
    words = [each.word for each in (*before, *behind)]
    return len(words) == 3 and words[0] in ("any", "all") and words[1:] == ["(", ")"]


def list_parameters(tokens: Sequence[Token]) -> set[int]:
    """The numbers of the parameters that are lists: `= ANY($1)`."""
    return {int(each.text[1:]) for at, each in enumerate(tokens) if each.kind == "parameter" and _after_any(tokens, at)}


def _list(token: Token) -> str:
    found = decode(string_of(token).encode(), BY_NAME["text"].array, 0)
    return found.expression.replace("{}", "'" + str(found.value).replace("'", "''") + "'")


def _parameter(token: Token, expressions: Mapping[int, str]) -> str:
    return expressions.get(int(token.text[1:]), "{}").replace("{}", token.text)


def _of_catalog(tokens: Sequence[Token], at: int, expressions: Mapping[int, str]) -> tuple[Edit, int] | None:
    """The edit of what begins with a token, and how many tokens it is about; None if it stays."""
    token = tokens[at]
    words = [each.word for each in tokens[at : at + 6]] + [""] * 6
    if token.kind in ("string", "parameter") and words[1] == "::":
        behind = 2 if words[2:4] != ["pg_catalog", "."] else 4
        if words[behind] == "regclass":
            text = token.text if token.kind == "string" else _parameter(token, expressions)
            return Edit(token.at, tokens[at + behind].end, f"{SHIM}_oid_of({text})"), behind + 1
    if words[0] == "operator" and words[1] == "(" and words[2:4] == ["pg_catalog", "."] and words[5] == ")":
        return Edit(token.at, tokens[at + 5].end, tokens[at + 4].text), 6
    if words[0] == "collate":
        used = 4 if tokens[at + 2 : at + 3] and words[2] == "." else 2
        return Edit(token.at, tokens[at + used - 1].end, ""), used
    if words[0] == "::":
        return _cast(tokens, at)
    if words[0] == "as" and words[1].startswith("reg") and words[1] in _TYPES and words[2] == ")":
        return Edit(token.at, tokens[at + 1].end, f"AS {_TYPES[words[1]]}"), 2
    if words[0] == "pg_catalog" and words[1] == ".":
        return _qualified(tokens, at)
    if words[0] == "information_schema" and words[1] == "." and words[2] in STANDARD:
        return Edit(token.at, tokens[at + 2].end, f"{SHIM}.is_{words[2]}"), 3
    if words[0] in _FUNCTIONS and words[1] == "(":
        return Edit(token.at, token.end, _FUNCTIONS[words[0]]), 1
    before = tokens[at - 1].word if at else ""
    if token.word in VIEWS and before != "." and words[1] not in ("(", "."):
        return Edit(token.at, token.end, f"{SHIM}.{token.word}"), 1
    return None


def _cast(tokens: Sequence[Token], at: int) -> tuple[Edit, int] | None:
    behind = at + 1
    if [each.word for each in tokens[behind : behind + 2]] in (["pg_catalog", "."], ["information_schema", "."]):
        behind += 2
    if behind >= len(tokens):
        return None
    token = tokens[behind]
    name = token.text.strip('"').lower()
    if token.kind == "quoted" and name != "char":
        return None
    return Edit(tokens[at].at, token.end, f"::{_TYPES.get(name, token.text)}"), behind - at + 1


def _qualified(tokens: Sequence[Token], at: int) -> tuple[Edit, int] | None:
    """`pg_catalog.x`: a view of the shim's, or a function or type without the schema."""
    if at + 2 >= len(tokens):
        return None
    name, behind = tokens[at + 2], tokens[at + 3 : at + 4]
    if behind and behind[0].text == "(":
        return Edit(tokens[at].at, name.end, _FUNCTIONS.get(name.word, name.text)), 3
    if name.word in VIEWS:
        return Edit(tokens[at].at, name.end, f"{SHIM}.{name.word}"), 3
    return Edit(tokens[at].at, name.end, _TYPES.get(name.word, f"pg_catalog.{name.text}")), 3

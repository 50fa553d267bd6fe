"""The tokens of SQL as PostgreSQL's clients write it, in time linear in its length. Only what is needed to tell one
statement from the next, what kind it is, and where parameters and names are; DuckDB parses the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from styx.postgres.sql_errors import SYNTAX_ERROR, TOO_LARGE, SqlError

TOKENS_MAX: Final = 200_000
Kind = Literal["word", "quoted", "string", "number", "parameter", "operator"]

_SKIPPED: Final = re.compile(r"(?:[ \t\r\n\f\v]++|--[^\r\n]*+)++")
_DOLLAR: Final = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*+)?+\$")
_TOKEN: Final = re.compile(
    r"(?P<escaped>[eE]'(?:[^'\\]|''|\\.)*+')"
    r"|(?P<string>(?:[bBxXnN]|[uU]&)?+'(?:[^']|'')*+')"
    r'|(?P<quoted>(?:[uU]&)?+"(?:[^"]|"")*+")'
    r"|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+)"
    r"|(?P<parameter>\$[0-9]++)"
    r"|(?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*+)"
    r"|(?P<operator>::|:=|[-+*/<>=~!@#%^&|`?]++|.)",
    re.DOTALL,
)
_COMMENT: Final = re.compile(r"/\*|\*/")
_OPERATOR_END: Final = re.compile(r"--|/\*")


class Token(NamedTuple):
    """A token: its kind, its text as it stands, and where it begins. `word`: in small letters, for a bare word."""

    kind: Kind
    text: str
    at: int

    @property
    def end(self) -> int:
        """Behind its last character."""
        return self.at + len(self.text)

    @property
    def word(self) -> str:
        """A bare word or an operator in small letters; "" for others."""
        return self.text.lower() if self.kind in ("word", "operator") else ""


def tokens(sql: str) -> list[Token]:
    """The tokens of a text; raises `SqlError` for one without an end, and for too many."""
    found: list[Token] = []
    for each in _tokens(sql):
        found.append(each)
        if len(found) > TOKENS_MAX:
            raise SqlError(TOO_LARGE, f"the text has more than {TOKENS_MAX} words and signs")
    return found


def _tokens(sql: str) -> Iterator[Token]:
    at = 0
    while (at := _past_space(sql, at)) < len(sql):
        if sql[at] == "$" and (opening := _DOLLAR.match(sql, at)) is not None:
            end = sql.find(opening[0], opening.end())
            if end < 0:
                raise SqlError(SYNTAX_ERROR, "unterminated dollar-quoted string", position=at + 1)
            yield Token("string", sql[at : end + len(opening[0])], at)
            at = end + len(opening[0])
            continue
        match = _TOKEN.match(sql, at)
        assert match is not None, "any character is an operator"
        kind, text = match.lastgroup, match[0]
        if text in ("'", '"'):
            what = "string" if text == "'" else "identifier"
            raise SqlError(SYNTAX_ERROR, f"unterminated quoted {what}", position=at + 1)
        if kind == "operator" and (inside := _OPERATOR_END.search(text)) is not None:
            text = text[: inside.start()]
        yield Token("string" if kind == "escaped" else kind, text, at)  # type: ignore[arg-type]  # a group's name
        at += len(text)


def _past_space(sql: str, at: int) -> int:
    """Where the next token begins."""
    while True:
        if (space := _SKIPPED.match(sql, at)) is not None:
            at = space.end()
        elif sql.startswith("/*", at):
            at = _past_comment(sql, at)
        else:
            return at


def _past_comment(sql: str, begin: int) -> int:
    """Comments stand in comments."""
    depth = 0
    for each in _COMMENT.finditer(sql, begin):
        depth += 1 if each[0] == "/*" else -1
        if depth == 0:
            return each.end()
    raise SqlError(SYNTAX_ERROR, "unterminated /* comment", position=begin + 1)


def statements(sql: str) -> list[list[Token]]:
    """The tokens of each statement, without the semicolons; empty ones are left out."""
    found: list[list[Token]] = [[]]
    for each in tokens(sql):
        if each.text == ";":
            found.append([])
        else:
            found[-1].append(each)
    return [each for each in found if each]


def source(sql: str, of: Sequence[Token]) -> str:
    """The text of a statement, without what stands before and behind it."""
    return sql[of[0].at : of[-1].end]


def name_of(token: Token) -> str:
    """A name: in small letters unless it is quoted; raises `SqlError` for a token that is none."""
    if token.kind == "word":
        return token.text.lower()
    if token.kind == "quoted" and token.text.startswith('"'):
        return token.text[1:-1].replace('""', '"')
    raise SqlError(SYNTAX_ERROR, f'syntax error at or near "{token.text[:40]}"', position=token.at + 1)


def string_of(token: Token) -> str:
    """What a string says, or a word or number itself."""
    if token.kind != "string":
        return token.text if token.kind in ("number", "operator") else name_of(token)
    if token.text.startswith("$"):
        tag = token.text.index("$", 1) + 1
        return token.text[tag:-tag]
    return token.text[token.text.index("'") + 1 : -1].replace("''", "'")

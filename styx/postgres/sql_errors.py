"""Errors as PostgreSQL's clients know them: five characters that say the kind (SQLSTATE), and a message for people."""

from __future__ import annotations

from typing import Final

from styx.errors import StyxError

PROTOCOL_VIOLATION: Final = "08P01"
FEATURE_NOT_SUPPORTED: Final = "0A000"
BAD_ENCODING: Final = "22021"
BAD_VALUE: Final = "22P02"
OUT_OF_RANGE: Final = "22003"
DATETIME_OVERFLOW: Final = "22008"
BAD_PARAMETER_VALUE: Final = "22023"
BAD_BINARY: Final = "22P03"
READ_ONLY: Final = "25006"
FAILED_TRANSACTION: Final = "25P02"
NO_TRANSACTION: Final = "25P01"
NO_STATEMENT: Final = "26000"
NOT_AUTHORIZED: Final = "28000"
BAD_PASSWORD: Final = "28P01"
NO_CURSOR: Final = "34000"
NO_SAVEPOINT: Final = "3B001"
SYNTAX_ERROR: Final = "42601"
UNDEFINED_SETTING: Final = "42704"
UNDEFINED_COLUMN: Final = "42703"
UNDEFINED_FUNCTION: Final = "42883"
UNDEFINED_TABLE: Final = "42P01"
DUPLICATE_CURSOR: Final = "42P03"
DUPLICATE_STATEMENT: Final = "42P05"
UNKNOWN_TYPE: Final = "42P18"
OUT_OF_MEMORY: Final = "53200"
TOO_MANY_CONNECTIONS: Final = "53300"
LIMIT_EXCEEDED: Final = "53400"
TOO_LARGE: Final = "54000"
QUERY_CANCELED: Final = "57014"
ADMIN_SHUTDOWN: Final = "57P01"
TOO_LATE: Final = "57P05"
INTERNAL: Final = "XX000"

MESSAGE_CHARS_MAX: Final = 4_096


class SqlError(StyxError):
    """An error for a client. `position`: of the character in the query that it is about, from 1 on; 0 for none."""

    def __init__(self, code: str, message: str, *, hint: str = "", position: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message[:MESSAGE_CHARS_MAX]
        self.hint = hint
        self.position = position


class ProtocolError(SqlError):
    """What came is no message of the protocol, or not in its place: the connection ends."""

    def __init__(self, message: str, code: str = PROTOCOL_VIOLATION) -> None:
        super().__init__(code, message)


_OF_DUCKDB: Final = (
    ("Catalog Error: Table", UNDEFINED_TABLE),
    ("Catalog Error: Scalar Function", UNDEFINED_FUNCTION),
    ("Catalog Error: Table Function", UNDEFINED_FUNCTION),
    ("Catalog Error: Macro", UNDEFINED_FUNCTION),
    ("Catalog Error: Type", UNDEFINED_SETTING),
    ("Catalog Error", UNDEFINED_TABLE),
    ("Binder Error: Referenced column", UNDEFINED_COLUMN),
    ("Binder Error: Referenced table", UNDEFINED_TABLE),
    ("Binder Error: Values were not provided", UNKNOWN_TYPE),
    ("Binder Error: No function matches", UNDEFINED_FUNCTION),
    ("Binder Error", SYNTAX_ERROR),
    ("Parser Error", SYNTAX_ERROR),
    ("Conversion Error", BAD_VALUE),
    ("Out of Range Error", OUT_OF_RANGE),
    ("Invalid Input Error", BAD_PARAMETER_VALUE),
    ("Not implemented Error", FEATURE_NOT_SUPPORTED),
    ("Permission Error", NOT_AUTHORIZED),
    ("only a SELECT may run", READ_ONLY),
    ("one SELECT is expected", SYNTAX_ERROR),
)


def of_duckdb(text: str) -> SqlError:
    """The error for what DuckDB, or the process around it, has said of a query."""
    code = next((code for begin, code in _OF_DUCKDB if text.startswith(begin)), INTERNAL)
    first, _, rest = text.partition("\n")
    kind, _, told = first.partition(": ")
    return SqlError(code, told if kind.endswith(" Error") else first, hint=rest.strip())

"""What answers queries in SQL: the seam between the servers that take them, over HTTP and over PostgreSQL's protocol,
and whatever holds the tables.

Each query sees all tables at one moment, the end of an epoch. It runs in a process of its own and can change nothing.
Nothing here knows where the rows come from.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from styx.errors import StyxError
from styx.query.relations import Table

if TYPE_CHECKING:
    import pyarrow as pa

Parameter = str | int | float | bool | bytes | None
"""A value for `$1`, `$2` and so on in a query."""
PARAMETER_TYPES: Final = b"styx.parameters"
"""Where the schema of a query that was only described has the types of its parameters, DuckDB's names as a list in
JSON; "" for one whose type does not follow from the query.
"""
Cause = Literal["query", "memory", "seconds", "rows"]
MEMORY_MIB_DEFAULT: Final = 1_024
SECONDS_DEFAULT: Final = 60.0
ROWS_DEFAULT: Final = 100_000


class QueryFailed(StyxError):
    """The query has no result. `cause`: it is wrong or may not run ("query"), or which limit it has reached."""

    def __init__(self, message: str, cause: Cause = "query") -> None:
        super().__init__(message)
        self.cause = cause


class QueryRefused(StyxError):
    """The query was not begun, because too many run: ask again later."""


@dataclass(frozen=True)
class Asked:
    """A query: one SELECT, and the values of its parameters.

    `describe`: only the columns of the result are wanted, and the types of the parameters (`PARAMETER_TYPES`); no table
    is read, and values need not be given. `prelude`: statements of the server's own that run before it, such as those
    that create macros; trusted, so never a user's. `catalog`: the query asks what tables there are, so all of them are
    created, without the rows of those that it does not name.
    """

    sql: str
    parameters: Sequence[Parameter] = ()
    describe: bool = False
    prelude: Sequence[str] = ()
    catalog: bool = False


@dataclass(frozen=True)
class Limits:
    """What a query may use: MiB of memory with the tables that it reads, seconds from its beginning on, and rows of its
    result.
    """

    memory_mib: int = MEMORY_MIB_DEFAULT
    seconds: float = SECONDS_DEFAULT
    rows: int = ROWS_DEFAULT


@dataclass(frozen=True)
class Answer:
    """`epoch`: at whose end the tables were read. `schema`: the result's columns. `batches`: its rows, as they come;
    raises `QueryFailed`. `as_of_s`: until when nothing later was known of, in seconds since 1970; None if nobody knows.
    """

    epoch: int
    schema: pa.Schema
    batches: AsyncIterator[pa.RecordBatch]
    as_of_s: float | None = None


class QueryService(Protocol):
    """Runs queries. Leaving the context of one, or cancelling its task, ends its process."""

    def tables(self) -> Sequence[Table]:
        """All tables there are now, with their columns."""
        ...

    def run(self, asked: Asked, limits: Limits) -> AbstractAsyncContextManager[Answer]:
        """Runs a query. Entering raises `QueryFailed` for one that is wrong, may not run, or has reached a limit, and
        `QueryRefused` if too many run already.
        """
        ...

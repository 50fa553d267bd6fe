"""What answers queries in SQL: the seam between the servers that take them, over HTTP and over PostgreSQL's protocol,
and whatever holds the tables.

Each query sees all tables at one moment, the end of an epoch. It runs in a process of its own and can change nothing.
Nothing here knows where the rows come from.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from styx.query.relations import Table

if TYPE_CHECKING:
    import pyarrow as pa

Parameter = str | int | float | bool | bytes | None
"""A value for `$1`, `$2` and so on in a query."""


@dataclass(frozen=True)
class Asked:
    """A query: one SELECT, and the values of its parameters.

    `describe`: only the columns of the result are wanted, which then has no rows. `prelude`: statements of the server's
    own that run before it, such as those that create macros. `catalog`: the query asks what tables there are, so all of
    them are created, without the rows of those that it does not name.
    """

    sql: str
    parameters: Sequence[Parameter] = ()
    describe: bool = False
    prelude: Sequence[str] = ()
    catalog: bool = False


@dataclass(frozen=True)
class Limits:
    """What a query may use: MiB of memory, seconds from its beginning on, and rows of its result."""

    memory_mib: int
    seconds: float
    rows: int


@dataclass(frozen=True)
class Answer:
    """`epoch`: at whose end the tables were read. `schema`: the result's columns. `batches`: its rows, as they come;
    raises `QueryFailed`.
    """

    epoch: int
    schema: pa.Schema
    batches: AsyncIterator[pa.RecordBatch]


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

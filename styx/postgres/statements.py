"""Prepared statements and portals of a session, and the rows that portals give: of a query that runs in the service, or
of a command that the session answers itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from styx.postgres import wire
from styx.postgres.commands import Command
from styx.postgres.types import ColumnType, catalog_type, column_type
from styx.query.arrow import SQL_TYPE
from styx.query.service import Asked

if TYPE_CHECKING:
    import pyarrow as pa

STATEMENTS_MAX: Final = 1_000
"""Prepared statements of a connection."""
PORTALS_MAX: Final = 32
"""Open portals of a connection, each of which may hold a query's process."""
TEXT_MAX: Final = 64 * 2**20
"""Characters of all prepared statements of a connection."""


class Static(NamedTuple):
    """Rows that are there already: names and types of the columns, in DuckDB's words, and values."""

    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[str | int | bool | None]]


class Columns(NamedTuple):
    """A result's columns."""

    names: Sequence[str]
    types: Sequence[ColumnType]

    def described(self, formats: Sequence[int]) -> bytes:
        """The message that tells them."""
        columns = [
            wire.Column(name, each.oid, each.size, each.modifier)
            for name, each in zip(self.names, self.types, strict=True)
        ]
        return wire.row_description(columns, formats)


def columns_of(schema: pa.Schema, *, catalog: bool) -> Columns:
    """The columns of a query's result; `catalog`: the query is about the catalog."""
    names = [(each.metadata or {}).get(SQL_TYPE, b"VARCHAR").decode() for each in schema]
    if catalog:
        return Columns(schema.names, [catalog_type(*each) for each in zip(schema.names, names, strict=True)])
    return Columns(schema.names, [column_type(each) for each in names])


def static_columns(of: Static) -> Columns:
    """The columns of rows that are there."""
    return Columns([name for name, _ in of.columns], [column_type(kind) for _, kind in of.columns])


@dataclass
class Statement:
    """A prepared one. `command`: None for an empty text. `types`: its parameters' oids, 0 for unknown ones.
    `columns`: None until it is described.
    """

    sql: str
    command: Command | None
    types: list[int]
    described: bool = False
    columns: Columns | None = None


@dataclass
class Portal:
    """A statement with its parameters. `number`: of its query in the service, 0 while none runs. `rows`: encoded, and
    not yet sent. `ended`: no more will come.
    """

    name: str
    command: Command | None
    asked: Asked | None
    formats: Sequence[int]
    static: Static | None = None
    columns: Columns | None = None
    number: int = 0
    rows: list[bytes] = field(default_factory=list)
    ended: bool = False
    hold: bool = False

"""The tables that SQL sees: `cart.state` has the values of an operator's entities, `cart.items` the rows of its table
`items`. SQL does not tell capitals from small letters, so a name that another one has already, or DuckDB itself, gets a
number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from styx.query.fields import Field
from styx.query.schema import Dataset, Schema

STATE: Final = "state"
SHIM: Final = "pg_shim"
"""The schema of what a server adds: PostgreSQL's catalogs."""
RESERVED: Final = ("temp", "system", "memory", "pg_catalog", "information_schema", SHIM)
"""What DuckDB, or a server, has schemas or databases of its own for."""


class Table(msgspec.Struct, frozen=True):
    """A table as a query process is told of it: where it is, its columns with their kinds, and the columns by which its
    rows are told apart, none if they are not known.
    """

    schema: str
    name: str
    columns: list[tuple[str, str]]
    key: list[str] = []


class Relation(NamedTuple):
    """A table, and what is in it."""

    table: Table
    dataset: Dataset

    @property
    def fields(self) -> list[Field]:
        """The columns by their names in SQL."""
        return [Field(*column) for column in self.table.columns]


def relations(schema: Schema) -> list[Relation]:
    """All tables of a schema."""
    datasets = list(schema.datasets.values())
    operators = list(dict.fromkeys(each.operator for each in datasets))
    found: list[Relation] = []
    for operator, named in zip(operators, distinct(operators, RESERVED), strict=True):
        # The tables first: a table that is called state keeps its name.
        own = sorted((each for each in datasets if each.operator == operator), key=lambda each: not each.own_name)
        for dataset, name in zip(own, distinct(each.own_name or STATE for each in own), strict=True):
            columns = _columns(dataset)
            found.append(Relation(Table(named, name, columns, _key(dataset, columns)), dataset))
    return found


def _columns(dataset: Dataset) -> list[tuple[str, str]]:
    names = distinct(each.name for each in dataset.columns)
    return [(name, each.kind) for name, each in zip(names, dataset.columns, strict=True)]


def _key(dataset: Dataset, columns: list[tuple[str, str]]) -> list[str]:
    if dataset.rows and not dataset.primary:
        return []
    own = [each.name for each in dataset.columns]
    return [columns[own.index(name)][0] for name in (*(each.name for each in dataset.keys), *dataset.primary)]


def distinct(names: Iterable[str], reserved: Iterable[str] = ()) -> Sequence[str]:
    """The names, each with `_2`, `_3` and so on behind it if it is reserved or one before it has it, in capitals or
    not.
    """
    taken = set(reserved)
    found: list[str] = []
    for name in names:
        other, number = name, 1
        while other.casefold() in taken:
            number += 1
            other = f"{name}_{number}"
        taken.add(other.casefold())
        found.append(other)
    return found


def quoted(name: str) -> str:
    """The name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'

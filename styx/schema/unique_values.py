"""The values of new unique app-wide indexes that one worker's rows have, to be compared with those of other workers.

A worker finds by itself which of its own rows have the same values. Of rows on two workers the coordinator finds it: it
gets a number for each value, which equal values share. A version whose indexes were unique before has nothing to
compare. Pure.

Reports of what was checked while epochs run are of different moments: a value that goes from a row of one worker to one
of another between them looks as if it stood twice, and the version is to be offered again. Those of a held snapshot are
of one moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

import msgspec

from styx.model.app import App
from styx.model.app_index import AppIndex
from styx.model.table_names import entry_name
from styx.relational.index_range import RowKey
from styx.relational.table import Table

VALUES_MAX: Final = 500_000
"""Values of one worker, in all new indexes together: they travel in one message."""
NAMED_MAX: Final = 10_000
"""So many values go with the names of their rows; of more, rows on different workers are only counted."""
Values = dict[str, list[tuple[int, str]]]
"""By index: a number for each value, and its row, "" if there are too many to name."""
_encode = msgspec.msgpack.Encoder().encode


class TooManyValues(Exception):
    """There are more than `VALUES_MAX` of them."""


def new_unique(app: App, present: App) -> set[str]:
    """The tables of `app` with a unique app-wide index that may not hold of the rows that `present` has written."""
    return {name for name, table in app.tables.items() if not _held(table, present.table(table.full_name))}


def _held(table: Table, before: Table | None) -> bool:
    unique = {str(index) for index in table.app_wide if index.unique}
    if not unique:
        return True
    if before is None or table.migration is not None:
        return False
    columns = {column.name for index in table.app_wide if index.unique for column in index.columns}
    same = all(_default(table, name) == _default(before, name) for name in columns)
    return same and unique <= {str(index) for index in before.app_wide if index.unique}


def _default(table: Table, name: str) -> object:
    try:
        return table.row_type.default_of(name)
    except LookupError:
        return None


def values_of(found: Iterable[tuple[AppIndex, RowKey, RowKey]], table: str) -> Values:
    """The values of one table's unique indexes; raises `TooManyValues`."""
    values: Values = {}
    for count, (index, value, key) in enumerate(found, 1):
        if count > VALUES_MAX:
            raise TooManyValues
        number = int.from_bytes(blake2b(_encode(value), digest_size=8).digest(), "big")
        label = f"{table} by {index.declared.name}"
        values.setdefault(label, []).append((number, entry_name(table, key) if count <= NAMED_MAX else ""))
    return values


def same_values(parts: Iterable[Values]) -> list[str]:
    """Words for each row whose value a row of an earlier part has."""
    seen: dict[tuple[str, int], str] = {}
    words: list[str] = []
    for part in parts:
        new: dict[tuple[str, int], str] = {}
        for label, values in part.items():
            table, _, index = label.partition(" by ")
            for number, name in values:
                other = seen.get((label, number))
                if other is None:
                    new[label, number] = name or f"another row of {table}"
                else:
                    words.append(f"{name or table}: {other} has the same values in the unique index {index!r}")
        seen.update(new)
    return words

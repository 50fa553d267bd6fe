"""The parents that rows refer to in other entities, and the parents that are there: held against each other before a
version runs whose references are new.

A worker says which parents its rows need and which it has; of all workers together the coordinator finds the missing
ones. A parent is a number, which two parents practically never share. Pure.

Reports of what was checked while epochs run are of different moments: a row may need a parent that another worker did
not have yet, and the version is to be offered again. Those of a held snapshot are of one moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final, Protocol

import msgspec

from styx.model.app import App
from styx.model.table_names import entry_name
from styx.relational.foreign_reference import ForeignReference
from styx.relational.index_range import RowKey
from styx.relational.table import Table

PARENTS_MAX: Final = 500_000
"""Parents that one worker needs or has, for all new references together: they travel in one message."""
NAMED_MAX: Final = 10_000
"""So many needed parents go with a row that needs them; of more, those that are missing are only counted."""
Needed = dict[str, list[tuple[int, str]]]
"""By reference: each parent that rows refer to, with words for one of the rows, "" if there are too many to name."""
There = dict[str, list[int]]
"""By reference: the parents that are there."""
_encode = msgspec.msgpack.Encoder().encode


class TooManyParents(Exception):
    """There are more of them than can travel."""


class Part(Protocol):
    """What one worker has found."""

    @property
    def needed(self) -> Needed: ...
    @property
    def there(self) -> There: ...


def new_references(app: App, present: App) -> set[str]:
    """The tables of `app` with a reference that may not hold of the rows that `present` has written."""
    return {name for name, table in app.tables.items() if not _held(table, present.table(table.full_name))}


def _held(table: Table, before: Table | None) -> bool:
    if not table.foreign:
        return True
    if before is None or table.migration is not None:
        return False
    return all(
        reference.name in {each.name for each in before.foreign}
        and all(_default(table, column.name) == _default(before, column.name) for column in reference.columns)
        for reference in table.foreign
    )


def _default(table: Table, name: str) -> object:
    try:
        return table.row_type.default_of(name)
    except LookupError:
        return None


def needed_by(reference: ForeignReference, rows: Iterable[tuple[RowKey, RowKey]], most: float) -> list[tuple[int, str]]:
    """The parents of (a row's key, its parent's key); raises `TooManyParents` if there are more than `most`."""
    found: dict[RowKey, RowKey] = {}
    for key, parent in rows:
        found.setdefault(parent, key)
        if len(found) > most:
            raise TooManyParents
    table = reference.child.full_name
    return [
        (_number(parent), f"{entry_name(table, key)}: it refers to {reference.parent_text(parent)}")
        if count < NAMED_MAX
        else (_number(parent), "")
        for count, (parent, key) in enumerate(found.items())
    ]


def those_there(keys: Iterable[Any], most: float) -> list[int]:
    """The parents with these keys, of rows or entities; raises `TooManyParents` if there are more than `most`."""
    numbers = [_number(key if isinstance(key, tuple) else (key,)) for key in keys]
    if len(numbers) > most:
        raise TooManyParents
    return numbers


def _number(parent: RowKey) -> int:
    return int.from_bytes(blake2b(_encode(parent), digest_size=8).digest(), "big")


def missing(parts: Iterable[Part]) -> list[str]:
    """Words for each parent that rows of a part need, and no part has."""
    parts = list(parts)
    there: dict[str, set[int]] = {}
    for part in parts:
        for name, numbers in part.there.items():
            there.setdefault(name, set()).update(numbers)
    words: dict[tuple[str, int], str] = {}
    for part in parts:
        for name, needed in part.needed.items():
            for number, text in needed:
                if number not in there.get(name, ()):
                    told = text or "a row refers to what is not there"
                    words.setdefault((name, number), f"{told}, which does not exist ({name})")
    return list(words.values())

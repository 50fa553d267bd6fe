"""The conversion of a slot's tables to another version of the app: tables renamed and dropped, values by `migrate=`,
rows completed with defaults, views made anew, and the ends of lives.

It happens while a generation of the new version loads its state. The same state always gives the same result, however
often and wherever it is converted, so a crash amid it is repaired by doing it again. Pure; the tables are not changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from styx.errors import EngineFailed
from styx.model.app import App
from styx.model.internal_operator import is_internal
from styx.model.limits import Limits
from styx.model.row_store import SERIAL_PREFIX
from styx.model.sequence import decode_number, encode_number, table_of
from styx.model.table_names import entry_name, owner_of, row_table
from styx.relational.table import Table
from styx.schema.completion import completed_rows
from styx.schema.lifetimes import lifetimes
from styx.schema.state_reading import Declared, Misfit, StateReader
from styx.schema.view_rebuilding import rebuilt_views, views_gone

Tables = Mapping[str, Mapping[Any, bytes]]


class Conversion(msgspec.Struct, frozen=True):
    """`writes`: the values that are stored instead, by table; None: nothing. `renamed` gives old tables their names,
    which the writes use; `dropped` tables are no more.
    """

    writes: dict[str, dict[Any, bytes | None]] = {}
    renamed: dict[str, str] = {}
    dropped: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.writes or self.renamed or self.dropped)


class NotConverted(EngineFailed):
    """A value cannot be converted, although the check before has passed it."""


def renames(app: App) -> dict[str, str]:
    """The names that tables had before, and those that they have now."""
    return {row_table(table.operator, table.was): name for name, table in app.tables.items() if table.was}


def conversion(app: App, tables: Tables, limits: Limits, n_slots: int) -> Conversion:
    """What the app makes of a slot's tables, of so many slots. Raises `NotConverted` naming the entity or row."""
    dropped = (
        frozenset(name for name in app.drops if tables.get(name)) | _entries_gone(app, tables) | views_gone(app, tables)
    )
    renamed = {old: new for old, new in renames(app).items() if tables.get(old) and old not in dropped}
    present = dict(tables)
    for old, new in renamed.items():
        if present.get(new):
            raise NotConverted(f"table {new!r} has rows already, and so has {old!r}, which is to be renamed to it")
        present[new] = present.pop(old)
    writes = _serials(tables, renamed, dropped)
    for name, declared in _declared(app):
        table = present.get(name)
        if declared.migration is None or not table:
            continue
        new_values = _converted(name, StateReader(declared, limits.value_bytes_max), table)
        if new_values:
            writes[name] = new_values
    for name, of_rows in app.tables.items():
        rows = present.get(name)
        if rows and of_rows.view_rule is None:
            completed = completed_rows(of_rows, rows, writes.get(name, {}))
            if completed:
                writes.setdefault(name, {}).update(completed)
    for numbered in app.tables.values():
        if numbered.auto == "serial" and (passed := _passed(numbered, present, writes)):
            writes.setdefault(table_of(numbered.operator), {}).update(passed)
    after = _after(present, writes, dropped)
    writes.update(rebuilt_views(app, after, n_slots))
    writes.update(lifetimes(app, after, renamed))
    return Conversion(writes, renamed, dropped)


def _entries_gone(app: App, tables: Tables) -> frozenset[str]:
    """The tables of internal operators that the app does not have: nothing implies their entries any more."""
    return frozenset(name for name in tables if is_internal(owner_of(name)) and app.table(name) is None)


def _after(present: Tables, writes: Mapping[str, Mapping[Any, bytes | None]], dropped: Collection[str]) -> Tables:
    """The tables as they are behind the writes, without those that are dropped."""
    after = {name: table for name, table in present.items() if name not in dropped}
    for name, changes in writes.items():
        after[name] = {key: data for key, data in {**after.get(name, {}), **changes}.items() if data is not None}
    return after


def _serials(
    tables: Tables, renamed: Mapping[str, str], dropped: Collection[str]
) -> dict[str, dict[Any, bytes | None]]:
    """The last numbers of tables with `auto="serial"` go with their tables: each entity keeps them as a sequence."""
    writes: dict[str, dict[Any, bytes | None]] = {}
    for old in (*renamed, *dropped):
        sequences = table_of(owner_of(old))
        name = SERIAL_PREFIX + old.partition("/")[2]
        for key, data in tables.get(sequences, {}).items():
            if key[-1] == name:
                changes = writes.setdefault(sequences, {})
                changes[key] = None
                if old in renamed:
                    changes[*key[:-1], SERIAL_PREFIX + renamed[old].partition("/")[2]] = data
    return writes


def _passed(table: Table, present: Tables, writes: Mapping[str, Mapping[Any, bytes | None]]) -> dict[Any, bytes | None]:
    """The last numbers of entities that have rows with higher ones, as when `auto="serial"` is new: these are passed.

    A conversion does not change primary keys, so the rows as they were say their numbers.
    """
    highest: dict[Any, int] = {}
    for key in present.get(table.full_name, {}):
        last = (*key[:-1], SERIAL_PREFIX + table.name)
        highest[last] = max(highest.get(last, 0), key[-1])
    sequences = table_of(table.operator)
    stored = {**present.get(sequences, {}), **writes.get(sequences, {})} if highest else {}
    return {key: encode_number(number) for key, number in highest.items() if number > decode_number(stored.get(key))}


def _declared(app: App) -> Iterator[tuple[str, Declared]]:
    yield from app.operators.items()
    yield from app.tables.items()


def _converted(name: str, reader: StateReader, table: Mapping[Any, bytes]) -> dict[Any, bytes | None]:
    new: dict[Any, bytes | None] = {}
    for key, data in table.items():
        try:
            reading = reader.read(data)
        except Misfit as error:
            raise NotConverted(
                f"{entry_name(name, key)}{error}: when the version was deployed, it could be converted, so migrate= "
                "uses more than the value that it is given"
            ) from None
        if reading.data is not None:
            new[key] = reading.data
    return new

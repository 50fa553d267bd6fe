"""The ends of lives (`styx.model.lifetime`) as another version of the app declares them: when it begins.

What now lives for a time and has no end yet begins its life with the version. A usual time that has become another one
counts from the last write. What lives on has no end any more. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from styx.model.agenda import (
    AT_ONCE,
    AgendaEntry,
    agenda_of,
    decode_entry,
    encode_entry,
    entry_key,
    giver_of,
)
from styx.model.app import App
from styx.model.lifetime import LIFE, VALUE, Life, encode_life, first_entry, id_of_place, life_of, name_of_row
from styx.model.operator import Operator
from styx.model.table_names import own_name, row_table
from styx.relational.table import Table

Tables = Mapping[str, Mapping[Any, bytes]]
Writes = dict[str, dict[Any, bytes | None]]


def lifetimes(app: App, tables: Tables, renamed: Mapping[str, str]) -> Writes:
    """What is to be written to a slot's agendas, by table, so that all that lives for a time only has an end, and
    nothing else. `tables` are those of the slot, `renamed` the new names of those that had others.
    """
    writes: Writes = {}
    for operator in app.operators.values():
        agenda = tables.get(agenda_of(operator.name), {})
        changes = _changed(app, operator, agenda, renamed)
        there = {**agenda, **changes}
        changes.update(_begun(app, operator, tables, there))
        if changes:
            writes[agenda_of(operator.name)] = changes
    return writes


def _changed(app: App, operator: Operator, agenda: Mapping[Any, bytes], renamed: Mapping[str, str]) -> dict[Any, Any]:
    """The ends that there are, moved, renamed or taken away."""
    changes: dict[Any, bytes | None] = {}
    for key, data in agenda.items():
        if not key[-1].startswith(LIFE):
            continue
        entry = decode_entry(data)
        life = life_of(entry)
        assert life is not None, "an entry with the key of an end of a life is none"
        new, name = life, key[-1]
        if life.table:
            full_name = row_table(operator.name, life.table)
            new = replace(life, table=own_name(renamed.get(full_name, full_name)))
            name = name_of_row(new.table, life.row)
        usual = _usual_us(app, operator, new.table)
        if usual is None or not (usual or new.own):
            changes[key] = None
            continue
        if not new.own:
            new = replace(new, ttl_us=usual)
        if new != life:
            changes[key] = None
            place = entry_key(giver_of(key)[0], name)
            if place != key:
                # A delivery from before may be under way. It finds nothing, and when it ends, it must not stand for
                # the entry that is elsewhere now.
                entry = replace(entry, id=id_of_place(agenda_of(operator.name), place))
            changes[place] = encode_entry(_moved(entry, new))
    return changes


def _moved(entry: AgendaEntry, life: Life) -> AgendaEntry:
    due_us = entry.due_us if entry.given_us == AT_ONCE else entry.given_us + life.ttl_us
    return replace(entry, due_us=due_us, params=encode_life(life))


def _usual_us(app: App, operator: Operator, table: str) -> int | None:
    """How long the rows of a table, or the values if it is "", live usually: 0 if they live on, None if all do."""
    if not table:
        return operator.ttl_us or None
    declared = app.tables.get(row_table(operator.name, table))
    return declared.ttl_us if declared is not None and declared.fades else None


class _Mortal(NamedTuple):
    entity: Any
    last: str
    life: Life


def _begun(app: App, operator: Operator, tables: Tables, there: Mapping[Any, Any]) -> dict[Any, bytes]:
    """Ends for what has none."""
    agenda, begun = agenda_of(operator.name), dict[Any, bytes]()
    for entity, last, life in _mortals(app, operator, tables):
        key = entry_key(entity, last)
        if there.get(key) is None:
            begun[key] = encode_entry(first_entry(agenda, key, operator.name, entity, life))
    return begun


def _mortals(app: App, operator: Operator, tables: Tables) -> Iterator[_Mortal]:
    if operator.ttl_us:
        life = Life("", [], operator.ttl_us)
        for entity in tables.get(operator.name, {}):
            yield _Mortal(entity, VALUE, life)
    for table in app.tables_of(operator):
        if table.ttl_us:
            yield from _mortal_rows(operator, table, tables.get(table.full_name, {}))


def _mortal_rows(operator: Operator, table: Table, rows: Mapping[Any, bytes]) -> Iterator[_Mortal]:
    parts = table.entity_parts
    alone = operator.key_type.scalar is not None
    for key in rows:
        entity, row = key[0] if alone else key[:parts], list(key[parts:])
        yield _Mortal(entity, name_of_row(table.name, row), Life(table.name, row, table.ttl_us))

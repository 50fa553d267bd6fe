"""The entries that rows of tables imply elsewhere, made anew of all rows: for when another version of the app begins.

An entry may have become another one with the version: its index is new, or renamed; or a row was converted, or
completed with a default. So none is taken over. The same rows give the same entries, however often
they are made. Pure, but for the app's own code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from styx.model.app import App
from styx.model.table_names import entities_of, owner_of
from styx.schema.conversion import Conversion, Tables

Writes = dict[str, dict[Any, bytes | None]]


def new_entries(
    app: App, slots: Mapping[int, Tables], conversions: Mapping[int, Conversion], wanted: Collection[int], n_slots: int
) -> dict[int, Writes]:
    """What is to be written in the `wanted` slots, so that they have all entries and no other ones. `slots` are the
    tables of all slots as they are stored, `conversions` what the app makes of them.
    """
    writes: dict[int, Writes] = {slot: {} for slot in wanted}
    for table, consequence in app.entries():
        assert consequence.entries is not None
        name = consequence.entries.full_name
        rows = (row for slot in slots for row in _rows(slots[slot], conversions[slot], table.full_name))
        found = _by_slot(app, name, consequence.derived(rows), n_slots)
        for slot in wanted:
            wished, present = found.get(slot, {}), slots[slot].get(name, {}) if slot in slots else {}
            changes: dict[Any, bytes | None] = {key: None for key in present if key not in wished}
            changes |= {key: data for key, data in wished.items() if present.get(key) != data}
            if changes:
                writes[slot][name] = changes
    return writes


def _rows(tables: Tables, changed: Conversion, name: str) -> Iterator[tuple[Any, bytes]]:
    """A table's rows as they are after the conversion."""
    old = next((old for old, new in changed.renamed.items() if new == name), name)
    for key, data in {**tables.get(old, {}), **changed.writes.get(name, {})}.items():
        if data is not None:
            yield key, data


def _by_slot(app: App, name: str, entries: dict[Any, bytes], n_slots: int) -> dict[int, dict[Any, bytes]]:
    operator: Any = app.owner(owner_of(name))
    keys = list(entries)
    found: dict[int, dict[Any, bytes]] = {}
    slots = operator.key_space.slots_of(list(entities_of(operator, name, keys)), n_slots)
    for key, slot in zip(keys, slots, strict=True):
        found.setdefault(slot, {})[key] = entries[key]
    return found

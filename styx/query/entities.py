"""One entity of a snapshot, its rows, and pages of a listing of keys.

A listing is in order of the keys, texts by code point and numbers by size, and goes on behind the last key of a page.
So its cursor is a key. A page reads all slots and keeps no more entries than it gives, beside one slot's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge, nsmallest
from itertools import islice
from typing import Any, Final, NamedTuple

from styx.errors import BadArguments, BadKey
from styx.model.key_range import KeyRange, key_text, of_rows, of_values
from styx.model.partitioning import Key, KeyType
from styx.model.table_names import entry_name
from styx.query.fields import json_of
from styx.query.schema import Dataset, Schema, misfit
from styx.query.slots import Entries, Slots
from styx.query.source import Source
from styx.values.codec import shown

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 10_000
"""Entries of a page of a listing."""


class Entry(NamedTuple):
    """An entry of a listing: its key, and its value as JSON."""

    key: Any
    value: bytes

    @property
    def line(self) -> bytes:
        """The entry as JSON."""
        return b'{"key":%b,"value":%b}' % (json_of(self.key), self.value)


class Page(NamedTuple):
    """The entries of a page, and the key behind which the next page begins, as text; None if there is no next one."""

    entries: list[Entry]
    after: str | None


def entity_json(source: Source, schema: Schema, operator: str, key: str) -> bytes | None:
    """The value of one entity as JSON, None if it has none; `key` is the key's text form.

    Raises `UnknownOperator`, `BadKey`, `UnsupportedValue` for a value that cannot be shown, and as `Slots`.
    """
    dataset = schema.dataset(operator)
    checked = _key_type(dataset).parse(key, operator)
    slots = Slots(source)
    for slot in _slots_of(source, dataset, checked):
        data = slots.value(slot, dataset.stored, checked)
        if data is not None:
            return _json(dataset, {dataset.stored: {checked: data}})(checked)
    return None


def rows_json(source: Source, schema: Schema, operator: str, table: str, key: str) -> bytes:
    """The rows of one entity in a table, as a JSON array in order of their primary keys; raises as `entity_json`."""
    dataset = schema.dataset(f"{operator}/{table}")
    if dataset.key_type is None:
        raise BadArguments(f"{dataset.name} is a view over many entities: list or export it")
    checked = dataset.key_type.parse(key, operator)
    entity = checked if type(checked) is tuple else (checked,)
    rows: list[bytes] = []
    slots = Slots(source)
    for slot in _slots_of(source, dataset, checked):
        entries = slots.entries(slot, dataset.tables)
        found = sorted(each for each in entries.get(dataset.stored, ()) if each[: len(entity)] == entity)
        rows += map(_json(dataset, entries), found)
    return b"[%b]" % b",".join(rows)


def page(
    source: Source, dataset: Dataset, prefix: str = "", after: str | None = None, limit: int = PAGE_DEFAULT
) -> Page:
    """A page of a dataset's entries, whose keys begin with `prefix` and come after the key `after`, both in text form.

    The prefix of texts is a text; that of keys of several parts, as those of rows are, a JSON array of the first ones,
    of which the last may be the beginning of a text. Raises `BadKey` for a prefix that no key can have, and as
    `entity_json`.
    """
    wanted = _range(dataset, prefix, after)
    slots = Slots(source)
    kept: list[tuple[Any, bytes]] = []
    for number in slots.numbers:
        entries = slots.entries(number, dataset.tables)
        keys = entries.get(dataset.stored, ())
        try:
            lowest = nsmallest(limit + 1, filter(wanted.has, keys))
        except TypeError:
            raise BadKey(f"keys of {dataset.name} have parts of other types than {shown(after)}") from None
        shown_by = _json(dataset, entries)
        found = ((key, shown_by(key)) for key in lowest)
        kept = list(islice(merge(kept, found, key=lambda each: each[0]), limit + 1))
    given = [Entry(*each) for each in kept[:limit]]
    return Page(given, key_text(given[-1].key) if len(kept) > limit else None)


def _json(dataset: Dataset, entries: Entries) -> Callable[[Any], bytes]:
    """What gives the JSON of an entry of a slot, by its key."""
    whole, stored = dataset.whole_of(entries), entries.get(dataset.stored, {})

    def shown_by(key: Any) -> bytes:
        try:
            return json_of(whole(key, stored[key]))
        except Exception as error:  # noqa: BLE001 - a type's own code can run here
            raise misfit(dataset, key, error) from None

    return shown_by


def _key_type(dataset: Dataset) -> KeyType:
    assert dataset.key_type is not None, "values belong to entities"
    return dataset.key_type


def _slots_of(source: Source, dataset: Dataset, key: Key) -> Iterator[int]:
    """The slot of an entity; all of them if only the app's code knows which it is."""
    if dataset.slot_of is None:
        yield from Slots(source).numbers
    else:
        yield dataset.slot_of(key, source.n_slots)


def _range(dataset: Dataset, prefix: str, after: str | None) -> KeyRange:
    if dataset.rows:
        return of_rows(None, dataset.name, prefix, after)
    return of_values(_key_type(dataset), dataset.name, prefix, after)


def absent(dataset: Dataset, key: str) -> str:
    """What is said of an entity without a value; `key` is its text form."""
    return f"{entry_name(dataset.name, _key_type(dataset).parse(key, dataset.name))} has no state"

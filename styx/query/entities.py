"""One entity of a snapshot, its rows, and pages of a listing of keys.

A listing is in order of the keys, texts by code point and numbers by size, and goes on behind the last key of a page.
So its cursor is a key. A page reads all slots and keeps no more entries than it gives, beside one slot's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import merge, nsmallest
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from styx.errors import BadArguments, BadKey
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
    begins = _beginning(dataset, prefix)
    behind = None if after is None else _behind(dataset, after)
    slots = Slots(source)
    kept: list[tuple[Any, bytes]] = []
    for number in slots.numbers:
        entries = slots.entries(number, dataset.tables)
        keys = entries.get(dataset.stored, ())
        wanted = nsmallest(limit + 1, (key for key in keys if begins(key) and (behind is None or key > behind)))
        shown_by = _json(dataset, entries)
        found = ((key, shown_by(key)) for key in wanted)
        kept = list(islice(merge(kept, found, key=lambda each: each[0]), limit + 1))
    given = [Entry(*each) for each in kept[:limit]]
    return Page(given, _text_of(given[-1].key) if len(kept) > limit else None)


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


def _is_plain_text(dataset: Dataset) -> bool:
    return not dataset.rows and _key_type(dataset).scalar is str


def _is_number(dataset: Dataset) -> bool:
    return not dataset.rows and _key_type(dataset).scalar is int


def _beginning(dataset: Dataset, prefix: str) -> Callable[[Any], bool]:
    if not prefix:
        return lambda key: True
    if _is_plain_text(dataset):
        return lambda key: key.startswith(prefix)
    if _is_number(dataset):
        raise BadKey(f"keys of {dataset.name} are numbers, which have no prefix: leave --prefix out")
    parts = _array(dataset, prefix, "a prefix")
    *first, last = parts
    count = len(first)

    def begins(key: Any) -> bool:
        if len(key) <= count or list(key[:count]) != first:
            return False
        part = key[count]
        return part.startswith(last) if type(part) is str and type(last) is str else bool(part == last)

    return begins


def _behind(dataset: Dataset, after: str) -> Any:
    if dataset.rows:
        return tuple(_array(dataset, after, "what --after has"))
    return _key_type(dataset).parse(after, dataset.name)


def _array(dataset: Dataset, text: str, what: str) -> list[Any]:
    try:
        parts = msgspec.json.decode(text, type=list[str | int])
    except (msgspec.DecodeError, RecursionError):
        parts = []
    if not parts:
        raise BadKey(f'{what} of keys of {dataset.name} is a JSON array such as ["a"] or [1,2], got {shown(text)}')
    return parts


def _text_of(key: Any) -> str:
    """The key's text form, as a command line has it."""
    return key if type(key) is str else json_of(key).decode()


def absent(dataset: Dataset, key: str) -> str:
    """What is said of an entity without a value; `key` is its text form."""
    return f"{entry_name(dataset.name, _key_type(dataset).parse(key, dataset.name))} has no state"

"""A snapshot's slots: the entries of chosen tables, one slot after the other, so that never more than one slot's are in
memory; and single values, for which the objects are read from the newest on until one has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from styx.backup.places import persistently
from styx.errors import EngineFailed
from styx.protocol.manifest import ObjectRef
from styx.query.source import Source
from styx.snapshot.part import blocks
from styx.store.base import NotFound

Entries = dict[str, dict[Any, bytes]]
"""By the slot's table and key, encoded."""


class Gone(EngineFailed):
    """An object of the snapshot is not in the store any more."""


class Slots:
    """The slots of the snapshot `source`. All methods raise `Gone`, `ObjectCorrupt`, and `OSError` for a store out of
    reach.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._objects = {slot.part.slot: slot.objects for slot in source.manifest.slots}

    @property
    def numbers(self) -> list[int]:
        """The slots, ascending."""
        return sorted(self._objects)

    def entries(self, slot: int, tables: Collection[str]) -> Entries:
        """What a slot has in these tables; those without entries are left out."""
        found: dict[str, dict[Any, bytes | None]] = {}
        for ref in self._objects[slot]:
            for name, keys, values in blocks(ref, self._read(ref), tables.__contains__):
                found.setdefault(name, {}).update(zip(keys, values, strict=True))
        return {name: kept for name, by in found.items() if (kept := {k: v for k, v in by.items() if v is not None})}

    def all_entries(self, tables: Collection[str]) -> Iterator[Entries]:
        """The entries of one slot after the other."""
        for slot in self.numbers:
            yield self.entries(slot, tables)

    def value(self, slot: int, table: str, key: Any) -> bytes | None:
        """One value, None if there is none."""
        for ref in reversed(self._objects[slot]):
            for _, keys, values in blocks(ref, self._read(ref), table.__eq__):
                if key in keys:
                    return values[keys.index(key)]
        return None

    def _read(self, ref: ObjectRef) -> bytes:
        try:
            return persistently(lambda: self._source.objects.get_range(ref.name, ref.start, ref.size))
        except NotFound:
            raise Gone(
                f"the store does not have {ref.name} any more, an object of {self._source.named}. {self._source.again}"
            ) from None

"""The state that a replica holds: the encoded entries of each slot and table at the end of one epoch.

What is held is never changed: a newer epoch is another object, which shares with the older one all that is the same. So
whoever still reads an epoch keeps it. Pure: where changes come from, snapshots or a feed of closed epochs, is not known
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from styx.state.slot_state import Delta

ENTRY_BYTES: Final = 150
"""What an entry takes beside its key and its value, about: its place in the table, and the heads of both objects."""
PART_BYTES: Final = 36
"""What a part of a key takes, about, beside the characters of a text."""
_MERGE_SHARE: Final = 8
"""Changes are merged into a table's entries when they are more than one of so many entries of it."""
_MERGE_MIN: Final = 1_024
_NOTHING: Final[Mapping[Any, bytes | None]] = {}


class SlotTable:
    """The entries that a slot has in a table. `bytes`: the memory that they take, about."""

    __slots__ = ("_base", "_changed", "bytes")

    def __init__(self, base: Mapping[Any, bytes], changed: Mapping[Any, bytes | None], size: int) -> None:
        self._base = base
        self._changed = changed
        self.bytes = size

    def entries(self) -> Mapping[Any, bytes]:
        """By key. Nobody changes it."""
        if not self._changed:
            return self._base
        return {key: value for key, value in {**self._base, **self._changed}.items() if value is not None}

    def changed(self, changes: Mapping[Any, bytes | None]) -> SlotTable:
        """The table after these changes; None removes an entry."""
        size = self.bytes
        for key, value in changes.items():
            old = self._changed[key] if key in self._changed else self._base.get(key)
            size += _size(key, value) - _size(key, old)
        table = SlotTable(self._base, {**self._changed, **changes}, size)
        if len(table._changed) * _MERGE_SHARE > len(self._base) + _MERGE_MIN * _MERGE_SHARE:
            return SlotTable(table.entries(), _NOTHING, size)
        return table


_EMPTY: Final = SlotTable({}, _NOTHING, 0)


class SlotChange(NamedTuple):
    """What changed in a slot by table and key, None for what is gone; if it is `whole`, all that the slot has."""

    delta: Delta
    whole: bool = False


SlotTables = Mapping[str, SlotTable]


@dataclass(frozen=True)
class EpochState:
    """The state at the end of `epoch`, by slot and table. `version`: of the app, which says what the entries mean.
    `closed_s`: when the epoch ended, or its state was stored, in seconds since 1970.
    """

    epoch: int
    version: int
    closed_s: float
    slots: Mapping[int, SlotTables]
    bytes: int = field(default=0)

    def slot_tables(self, slot: int, names: tuple[str, ...]) -> tuple[SlotTable | None, ...]:
        """These tables of a slot, None for one without entries. As long as they are the same objects, so is what is in
        them.
        """
        tables = self.slots[slot]
        return tuple(map(tables.get, names))


class TooLarge(Exception):
    """The state would take more memory than it may; `bytes` is how much."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.bytes = size


class ReplicaState:
    """The newest complete state, None before the first. It may take `bytes_max` of memory, about."""

    def __init__(self, bytes_max: int) -> None:
        self.current: EpochState | None = None
        self._bytes_max = bytes_max

    def replace(self, epoch: int, version: int, closed_s: float, contents: Mapping[int, Delta]) -> None:
        """From now on the state is this, of these slots. Raises `TooLarge`, and keeps what it had."""
        slots = {slot: _after({}, SlotChange(delta, whole=True)) for slot, delta in contents.items()}
        self._take(epoch, version, closed_s, slots)

    def apply(self, epoch: int, version: int, closed_s: float, changes: Mapping[int, SlotChange]) -> None:
        """From now on the state is the current one with these changes, all that was committed since by `epoch`. Raises
        `TooLarge`, and keeps what it had.
        """
        current = self.current
        assert current is not None, "there is a state that changes"
        assert epoch >= current.epoch, "what is served does not go back"
        assert changes.keys() <= current.slots.keys(), "the slots stay the same"
        changed = {slot: _after(current.slots[slot], change) for slot, change in changes.items()}
        self._take(epoch, version, closed_s, {**current.slots, **changed})

    def _take(self, epoch: int, version: int, closed_s: float, slots: Mapping[int, SlotTables]) -> None:
        size = sum(table.bytes for tables in slots.values() for table in tables.values())
        if size > self._bytes_max:
            raise TooLarge(size)
        self.current = EpochState(epoch, version, closed_s, slots, size)


def _after(tables: SlotTables, change: SlotChange) -> SlotTables:
    before = {} if change.whole else tables
    changed = {name: before.get(name, _EMPTY).changed(entries) for name, entries in change.delta.items()}
    return {name: table for name, table in {**before, **changed}.items() if table.bytes}


def _size(key: Any, value: bytes | None) -> int:
    if value is None:
        return 0
    parts = key if type(key) is tuple else (key,)
    texts = sum(len(part) for part in parts if isinstance(part, str | bytes))
    return ENTRY_BYTES + PART_BYTES * len(parts) + texts + len(value)

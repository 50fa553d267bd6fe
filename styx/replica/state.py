"""The state that a replica holds: the encoded entries of each slot and table at the end of one epoch.

What is held is never changed: a newer epoch is another object, which shares with the older one all that is the same. So
whoever still reads an epoch keeps it. Pure: where changes come from, snapshots or a feed of closed epochs, is not known
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from styx.model.table_names import holds_rows, holds_values
from styx.state.slot_state import IDEMPOTENCY_TABLE, Delta

ENTRY_BYTES: Final = 150
"""What an entry takes beside its key and its value, about: its place in the table, and the heads of both objects."""
PART_BYTES: Final = 36
"""What a part of a key takes, about, beside the characters of a text."""
_MERGE_SHARE: Final = 8
"""A layer of changes is merged with the one below it when it has more than one of so many entries of that."""
_MERGE_MIN: Final = 1_024
"""Fewer changes than these are not merged into a table's entries."""


class SlotTable:
    """The entries that a slot has in a table. `bytes`: the memory that they take, about.

    It is made of layers: the oldest has entries, each later one what has changed since, None for what is gone. A change
    adds a layer, and is merged with the one below it when that is not much larger. So a change costs a few times its
    own size, and now and then more, however large the table is.
    """

    __slots__ = ("_layers", "bytes")

    def __init__(self, layers: tuple[Mapping[Any, bytes | None], ...], size: int) -> None:
        self._layers = layers
        self.bytes = size

    def entries(self) -> Mapping[Any, bytes]:
        """By key. Nobody changes it."""
        base, *later = self._layers
        if not later:
            return cast(Mapping[Any, bytes], base)  # the oldest layer has no None
        return _whole(base, *later)

    def changed(self, changes: Mapping[Any, bytes | None]) -> SlotTable:
        """The table after these changes; None removes an entry."""
        size, layers = self.bytes, self._layers
        newest_first = layers[::-1]
        for key, value in changes.items():
            old = next((layer[key] for layer in newest_first if key in layer), None)
            size += _size(key, value) - _size(key, old)
        while len(layers) > 1 and len(changes) * _MERGE_SHARE > len(layers[-1]):
            layers, changes = layers[:-1], {**layers[-1], **changes}
        if len(layers) == 1 and len(changes) * _MERGE_SHARE > len(layers[0]) + _MERGE_MIN * _MERGE_SHARE:
            return SlotTable((_whole(layers[0], changes),), size)
        return SlotTable((*layers, changes), size)


def _whole(*layers: Mapping[Any, bytes | None]) -> Mapping[Any, bytes]:
    """What is left of layers, oldest first."""
    found: dict[Any, bytes | None] = {}
    for layer in layers:
        found.update(layer)
    return {key: value for key, value in found.items() if value is not None}


_EMPTY: Final = SlotTable(({},), 0)


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


def whole(epoch: int, version: int, closed_s: float, contents: Mapping[int, Delta], bytes_max: int) -> EpochState:
    """The state that has this in these slots. Raises `TooLarge` if it takes more than `bytes_max` of memory, about."""
    slots = {slot: _after({}, SlotChange(delta, whole=True)) for slot, delta in contents.items()}
    size = sum(map(_bytes, slots.values()))
    return EpochState(epoch, version, closed_s, slots, _allowed(size, bytes_max))


def after(
    state: EpochState, epoch: int, version: int, closed_s: float, changes: Mapping[int, SlotChange], bytes_max: int
) -> EpochState:
    """The `state` with these changes, which are all that was committed behind it by the end of `epoch`. Raises
    `TooLarge`.
    """
    assert epoch >= state.epoch, "a state does not go back"
    assert changes.keys() <= state.slots.keys(), "the slots stay the same"
    changed = {slot: _after(state.slots[slot], change) for slot, change in changes.items()}
    size = state.bytes + sum(_bytes(tables) - _bytes(state.slots[slot]) for slot, tables in changed.items())
    return EpochState(epoch, version, closed_s, {**state.slots, **changed}, _allowed(size, bytes_max))


def _bytes(tables: SlotTables) -> int:
    return sum([table.bytes for table in tables.values()])


def _allowed(size: int, bytes_max: int) -> int:
    if size > bytes_max:
        raise TooLarge(size)
    return size


def is_shown(table: str) -> bool:
    """Whether the slot's table is one that queries can see: values and rows, and no replies, sequences and agendas."""
    return table != IDEMPOTENCY_TABLE and (holds_values(table) or holds_rows(table))


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

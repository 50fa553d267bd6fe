"""Checks of an operator's placement: does a key give the same slot at every call, and the slot where its state is
stored?

An entity that is looked for in another slot than its own is lost without any error. A wrong `partition_key` is found
with sample keys at its declaration, by a digest of their slots when an app replaces another one, and with the stored
keys when state is loaded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import signature
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

from styx.errors import BadKey, ConfigurationError
from styx.model.partitioning import Key, KeyType, encode_part
from styx.model.table_names import entities_of, owner_of
from styx.values.codec import shown

if TYPE_CHECKING:
    from styx.model.operator import Operator

_TEXTS: Final = ("alice", "bob-17", "user:42", "shop/4711/a", "2024-02-29", "DE_10115.x", "a@example.org", "ключ 9 ü")
_NUMBERS: Final = (0, 1, 7, 42, 1_000, 65_537, -3, 2**40 + 11)
CHECKED_AT_ONCE: Final = 4096
"""Stored keys that are checked at once: other threads run in between."""


class Misplaced(NamedTuple):
    """A stored key of an operator that is in one slot and would be looked for in another, or (None) nowhere."""

    operator: str
    key: Any
    stored_in: int
    looked_for_in: int | None

    def __str__(self) -> str:
        if self.looked_for_in is None:
            where = "cannot be looked for at all: it is no key of the operator, or its partition_key fails for it"
        else:
            where = f"would be looked for in slot {self.looked_for_in}"
        return f"operator {self.operator!r}: {shown(self.key)} is stored in slot {self.stored_in} and {where}"


def sample_keys(key_type: KeyType) -> list[Key]:
    """A few keys of this type, always the same ones; new objects each time, as far as Python allows."""
    return [_sample(key_type, number) for number in range(len(_TEXTS))]


def check_partition_key(operator: str, key_type: KeyType, part_of: Callable[[Any], Any]) -> None:
    """Raises `ConfigurationError` for a `partition_key` that is of no use: it takes no key, two equal keys have
    different values, or a value is of a type that has no place. One that fails for a sample may not fail for a real
    key, and is let pass.
    """
    try:
        signature(part_of).bind("a key")
    except TypeError as error:
        raise ConfigurationError(f"operator {operator!r}: partition_key gets one key: {error}") from None
    except Exception:  # noqa: BLE001 - it has none that can be read: builtins, whatever a class makes of it
        pass
    for first, second in zip(sample_keys(key_type), sample_keys(key_type), strict=True):
        try:
            values = part_of(first), part_of(second)
        except BaseException:  # noqa: BLE001 - the app's own function; for its own keys it may do
            continue
        places = []
        for value in values:
            try:
                places.append(encode_part(value))
            except Exception:  # noqa: BLE001 - whatever msgspec says of a type
                raise ConfigurationError(
                    f"operator {operator!r}: partition_key gives {shown(value)} of type {type(value).__name__} for "
                    f"{shown(first)}: it must give a str, an int or a tuple of them"
                ) from None
        if places[0] != places[1]:
            raise ConfigurationError(
                f"operator {operator!r}: partition_key gives {shown(values[0])} and then {shown(values[1])} for the "
                f"same key {shown(first)}: its value must depend on nothing but the key, or entities could not be "
                "found again"
            )


def placement_digest(key_type: KeyType, part_of: Callable[[Any], Any] | None) -> str:
    """A digest of where sample keys go; empty for an operator without a `partition_key`."""
    if part_of is None:
        return ""
    places: list[str] = []
    for key in sample_keys(key_type):
        try:
            places.append(str(crc32(encode_part(part_of(key)))))
        except BaseException as error:  # noqa: BLE001 - the app's own function
            places.append(type(error).__name__)
    return hashlib.blake2b(" ".join(places).encode(), digest_size=16).hexdigest()


def misplaced(operator: Operator, slot: int, keys: Iterable[Key], n_slots: int) -> Misplaced | None:
    """The first of these keys, stored in `slot`, that would be looked for elsewhere; every one is looked at."""
    for block in _blocks(keys):
        if any(found != slot for found in _slots(operator, block, n_slots)):
            for key in block:
                where = _slot(operator, key, n_slots)
                if where != slot:
                    return Misplaced(operator.name, key, slot, where)
    return None


def first_misplaced(
    operators: Mapping[str, Operator], slots: Mapping[int, Mapping[str, Mapping[Any, Any]]], n_slots: int
) -> Misplaced | None:
    """As `misplaced`, of all tables by slot and operator; those of operators that are not there are passed over."""
    for slot, tables in sorted(slots.items()):
        for name, table in sorted(tables.items()):
            operator = operators.get(owner_of(name))
            found = None if operator is None else misplaced(operator, slot, entities_of(operator, name, table), n_slots)
            if found is not None:
                return found
    return None


def _sample(key_type: KeyType, number: int) -> Key:
    if key_type.scalar is not None:
        return _part(key_type.scalar, number)
    return tuple(_part(kind, number + at) for at, kind in enumerate(key_type.parts))


def _part(kind: type, number: int) -> str | int:
    if kind is int:
        return int(str(_NUMBERS[number % len(_NUMBERS)]))
    return "".join(list(_TEXTS[number % len(_TEXTS)]))


def _blocks(keys: Iterable[Key]) -> Iterator[list[Key]]:
    iterator = iter(keys)
    while block := list(islice(iterator, CHECKED_AT_ONCE)):
        yield block


def _slots(operator: Operator, keys: list[Key], n_slots: int) -> list[int | None]:
    try:
        operator.check_key(keys[0])  # the keys of an operator are of one type
        return list(operator.slots_of(keys, n_slots))
    except BadKey:
        return [None]


def _slot(operator: Operator, key: Key, n_slots: int) -> int | None:
    try:
        return operator.slot_of(operator.check_key(key), n_slots)
    except BadKey:
        return None

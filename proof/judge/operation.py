"""An operation of a judged transaction: its entity, what it writes, and the number that travels behind it.

An operation is [kind, numbers, value]. Its kind is

    "r"                read the entity
    "w" / "append"     overwrite it / append to its list
    "next" / "last"    take the next number of its sequence / read the number that was taken last

A transaction carries one number, 0 at first: the one that it read or took last. The number decides which of `numbers`
is the entity, so a transaction that runs again may use other entities. The number may also be a part of what is
written: `value` is then [value]. It is "id" for a unique id. Everything that is written is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from zlib import crc32

Operation = list[Any]
Done = list[Any]
"""[number of the entity, value]: what an operation read, wrote or took; None if the entity had no state."""

READS: Final = frozenset({"r", "last"})
WRITES: Final = frozenset({"w", "append"})
UNIQUE_ID: Final = "id"
CARRIED: Final = 1_000
"""Values are multiples of this, and a number that travels is added to them, modulo this."""


class Refused(Exception):
    """The transaction fails on purpose, after all its operations."""


def target(numbers: Sequence[int], carried: int) -> int:
    """The number of the entity."""
    return numbers[carried % len(numbers)]


def written(value: Any, carried: int, unique_id: Callable[[], str]) -> Any:
    """What is written for the `value` of an operation."""
    if value == UNIQUE_ID:
        return unique_id()
    return value[0] + carried % CARRIED if isinstance(value, list) else value


def carried_behind(kind: str, value: Any, carried: int) -> int:
    """The number that the transaction carries when it has read, written or taken `value`."""
    if kind in WRITES or value is None:
        return carried
    if isinstance(value, list):
        return len(value)
    return crc32(str(value).encode()) if kind == "r" else int(value)


def carried_at_the_end(operations: Sequence[Operation], done: Sequence[Done]) -> int:
    """The number that is carried when all `operations` are `done`."""
    carried = 0
    for (kind, _, _), (_, value) in zip(operations, done, strict=True):
        carried = carried_behind(kind, value, carried)
    return carried


def contradiction(operations: Sequence[Operation], done: Sequence[Done]) -> str:
    """Why a transaction cannot have `done` that: a number that travelled was not the one that it had read. Empty if it
    can.
    """
    if len(done) != len(operations):
        return f"it did {len(done)} of {len(operations)} operations"
    carried = 0
    for (kind, numbers, value), (n, got) in zip(operations, done, strict=True):
        if n != target(numbers, carried):
            return f"it was on entity {n}, but {target(numbers, carried)} is that of the number {carried}"
        if kind in WRITES and value != UNIQUE_ID and got != written(value, carried, str):
            return f"it wrote {got} to {n}, and not {value} with the number {carried}"
        carried = carried_behind(kind, got, carried)
    return ""

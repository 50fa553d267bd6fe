"""An operator's key space as the engine uses it: which keys are valid, and on which slot each of them lives.

It does the same as `styx.model.partitioning`, in compiled code and fewer steps. Paper section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec

from styx.errors import BadKey, describe
from styx.model.partitioning import SHORT_TEXT_CHARS, Key, KeyType, encode_part, partition_function
from styx.values.codec import shown

_SMALL: Final = 2**61
"""Integers below this magnitude fit 64 bits; skip the check."""
_encode = msgspec.msgpack.Encoder().encode


class KeySpace:
    """The keys of `operator`: of `key_type`, spread over `n_partitions`, or over all slots if that is None, by the hash
    of what `partition_key` makes of them.
    """

    __slots__ = ("_check", "_hash", "_integers", "_n_partitions", "_parts", "operator", "partition_key")

    def __init__(
        self,
        operator: str,
        key_type: KeyType,
        n_partitions: int | None,
        partition_key: Callable[[Any], Any] | None,
    ) -> None:
        self.operator = operator
        self._check = key_type.check
        self._integers = key_type.scalar is int
        self._parts = key_type.parts
        self._n_partitions = n_partitions or 0
        self.partition_key = partition_key
        self._hash = partition_function(partition_key)

    def check(self, key: Any) -> Any:
        """`key` as the engine holds it; raises `BadKey` for what is none."""
        if self._integers and type(key) is int:
            number: int = key
            if -_SMALL < number < _SMALL:
                return key
        elif type(key) is tuple and self._is_small(key):
            return key
        check = self._check
        return check(key, self.operator)

    def _is_small(self, key: tuple[Any, ...]) -> bool:
        """Whether it is certainly a key: of these types, and with parts that are certainly small enough."""
        parts = self._parts
        if len(key) != len(parts):
            return False
        for part, kind in zip(key, parts, strict=True):
            if type(part) is not kind:
                return False
            if type(part) is int:
                if not -_SMALL < part < _SMALL:
                    return False
            elif type(part) is str and (len(part) > SHORT_TEXT_CHARS or not part.isascii()):
                return False
        return True

    def partition_of(self, key: Any, n_slots: int) -> int:
        """Partition index of a checked key. Raises `BadKey` if the app's `partition_key` fails."""
        part_of = self.partition_key
        try:
            value: int = crc32(_encode(key) if part_of is None else encode_part(part_of(key)))
        except BaseException as error:  # noqa: BLE001 - the app's own function: it can raise anything
            kind, message = describe(error)
            told = message if isinstance(error, TypeError | ValueError) else f"{kind}: {message}"
            raise BadKey(f"partition_key of operator {self.operator!r} failed for {shown(key)}: {told}") from None
        return value % (self._n_partitions or n_slots)

    def slot_of(self, key: Any, n_slots: int) -> int:
        """The slot of a checked key: that of its partition, `partition_of(key) % n_slots`. Raises as `partition_of`."""
        return self.partition_of(key, n_slots) % n_slots

    def slots_of(self, keys: Sequence[Key], n_slots: int) -> list[int]:
        """The slot of each checked key, at a smaller cost than key by key; raises as `partition_of`."""
        n_partitions = self._n_partitions or n_slots
        try:
            return [value % n_partitions % n_slots for value in map(self._hash, keys)]
        except BaseException:  # noqa: BLE001 - the app's own function; key by key, the error names the one it failed for
            return [self.partition_of(key, n_slots) % n_slots for key in keys]

"""Keys and where they live: key types, their check, and the stable hash that decides an entity's partition. Paper
section 3.

The hash is CRC-32 of the key's msgpack encoding: the same in every process, on every Python build and easy
to compute in any other language. Python's own `hash` is never used, since it differs between processes.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec

from styx.errors import BadKey, ConfigurationError, describe
from styx.model.limits import KEY_BYTES_MAX
from styx.values.codec import shown

Key = str | int | tuple[str | int, ...]

_DECIMAL = re.compile(r"-?+[0-9]++", re.ASCII)
_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**63 - 1
_SMALL: Final = 2**61
"""Integers below this magnitude fit 64 bits; skip the check."""
SHORT_TEXT_CHARS: Final = KEY_BYTES_MAX // 4
"""A text of so few characters is within `KEY_BYTES_MAX`, whatever the characters."""
HASHES_KEPT_MAX: Final = 32_768
"""Keys of an operator with a `partition_key` whose hashes are kept, and as many that were asked for before these."""
_encode = msgspec.msgpack.Encoder().encode
encode_part = msgspec.msgpack.Encoder(order="deterministic").encode
"""Encodes the value of a `partition_key`; equal sets give the same bytes in every process."""


def stable_hash(value: Any) -> int:
    """32-bit hash of a key or a partition key, the same everywhere."""
    return crc32(_encode(value))


class KeyType:
    """The type of an operator's keys: `str`, `int`, or a fixed-length tuple of them."""

    __slots__ = ("check", "name", "parts", "scalar")

    def __init__(self, declared: Any) -> None:
        self.scalar: type | None = None
        self.parts: tuple[type, ...] = ()
        # `list[int]` and `int | str` have arguments too, but no keys.
        parts = typing.get_args(declared) if typing.get_origin(declared) is tuple else declared
        if declared in (str, int):
            self.scalar = declared
            self.name = declared.__name__
            self.check: Callable[[Any, str], Key] = self._check_int if declared is int else self._check_str
        elif isinstance(parts, tuple) and parts and all(part in (str, int) for part in parts):
            self.parts = tuple(parts)
            self.name = "(" + ", ".join(part.__name__ for part in parts) + ")"
            self.check = self._check_tuple
        else:
            raise ConfigurationError(
                f"key_type must be str, int or a tuple of them such as (int, str), not {shown(declared)}"
            )

    # `check(key, operator)` is the one of these that fits: it gives `key` as the engine holds it (a list becomes a
    # tuple), or raises `BadKey`, which names operator and key.

    def _check_int(self, key: Any, operator: str) -> Key:
        if type(key) is int:
            if _INT_MIN <= key <= _INT_MAX:
                return key
            raise BadKey(f"the key of operator {operator!r} must fit 64 bits, got {shown(key)}")
        raise self._another_type(key, operator)

    def _check_str(self, key: Any, operator: str) -> Key:
        if type(key) is str:
            if len(key) <= SHORT_TEXT_CHARS and key.isascii():
                return key
            return self._checked_text(key, operator)
        raise self._another_type(key, operator)

    def _check_tuple(self, key: Any, operator: str) -> Key:
        if type(key) in (tuple, list) and len(key) == len(self.parts) and tuple(map(type, key)) == self.parts:
            return self._checked_tuple(tuple(key), operator)
        raise self._another_type(key, operator)

    def _another_type(self, key: Any, operator: str) -> BadKey:
        return BadKey(
            f"operator {operator!r} has keys of type {self.name}, got {shown(key)} of type {type(key).__name__}"
        )

    def _checked_text(self, key: str, operator: str) -> str:
        try:
            size = len(key.encode())
        except UnicodeEncodeError:
            raise BadKey(f"the key of operator {operator!r} is not valid Unicode: {shown(key)}") from None
        if size > KEY_BYTES_MAX:
            raise BadKey(f"a key of operator {operator!r} has {size} bytes; the limit is {KEY_BYTES_MAX}")
        return key

    def _checked_tuple(self, key: tuple[str | int, ...], operator: str) -> Key:
        for part in key:
            if type(part) is str:
                self._checked_text(part, operator)
            elif not _INT_MIN <= typing.cast(int, part) <= _INT_MAX:
                raise BadKey(f"the key of operator {operator!r} must fit 64 bits, got {shown(key)}")
        return key

    def parse(self, text: str, operator: str) -> Key:
        """The key from its text form in a URL or on a command line: decimal `int`, JSON array for a tuple."""
        if self.scalar is str:
            return self.check(text, operator)
        try:
            key = msgspec.json.decode(text) if self.scalar is None else _decimal(text)
        except (ValueError, RecursionError):
            form = "a decimal number" if self.scalar is int else "a JSON array such as [1,2]"
            raise BadKey(f"the key of operator {operator!r} must be {form}, got {shown(text)}") from None
        return self.check(key, operator)


def _decimal(text: str) -> int:
    # int() also takes blanks, underscores and other scripts' digits; those are typing errors in an address.
    # Its time is quadratic in the digits, so there is a limit, which leaves room for zeros in front.
    if len(text) > KEY_BYTES_MAX or _DECIMAL.fullmatch(text) is None:
        raise ValueError
    return int(text, 10)


def partition_function(partition_key: Callable[[Any], Any] | None) -> Callable[[Any], int]:
    """The function from a checked key to its 32-bit partition hash."""
    if partition_key is None:
        return stable_hash

    def by_partition_key(key: Any) -> int:
        return crc32(encode_part(partition_key(key)))

    return by_partition_key


class KeySpace:
    """The keys of `operator`: of `key_type`, spread over `n_partitions`, or over all slots if that is None, by the hash
    of what `partition_key` makes of them.
    """

    __slots__ = (
        "_check",
        "_hash",
        "_hashed",
        "_hashed_before",
        "_n_partitions",
        "_parts",
        "_scalar",
        "operator",
        "partition_key",
    )

    def __init__(
        self,
        operator: str,
        key_type: KeyType,
        n_partitions: int | None,
        partition_key: Callable[[Any], Any] | None,
    ) -> None:
        self.operator = operator
        self._check = key_type.check
        self._scalar = key_type.scalar
        self._parts = key_type.parts
        self._n_partitions = n_partitions or 0
        self.partition_key = partition_key
        self._hash = partition_function(partition_key)
        self._hashed: dict[Any, int] = {}
        self._hashed_before: dict[Any, int] = {}

    def check(self, key: Any) -> Any:
        """`key` as the engine holds it; raises `BadKey` for an invalid one."""
        kind: Any = type(key)
        if kind is self._scalar:
            if kind is str:
                text: str = key
                if len(text) <= SHORT_TEXT_CHARS and text.isascii():
                    return key
            else:
                number: int = key
                if -_SMALL < number < _SMALL:
                    return key
        elif type(key) is tuple and self._is_small(key):
            return key
        check = self._check
        return check(key, self.operator)

    def _is_small(self, key: tuple[Any, ...]) -> bool:
        """Whether `key` is surely valid: of the declared types, and with parts that are surely small enough."""
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
        if part_of is None:
            return crc32(_encode(key)) % (self._n_partitions or n_slots)
        hashed = self._hashed.get(key)
        if hashed is None:
            hashed = self._hash_of(key, part_of)
        return hashed % (self._n_partitions or n_slots)

    def _hash_of(self, key: Any, part_of: Callable[[Any], Any]) -> int:
        """The hash of what `partition_key` makes of a key. It is kept: whoever calls an entity has asked for it, so the
        app's code does not run again when rows of the entity are committed, where nothing would limit its time.
        """
        kept = self._hashed_before.get(key)
        if kept is not None:
            return kept
        try:
            hashed: int = crc32(encode_part(part_of(key)))
        except BaseException as error:  # noqa: BLE001 - the app's own function: it can raise anything
            kind, message = describe(error)
            told = message if isinstance(error, TypeError | ValueError) else f"{kind}: {message}"
            raise BadKey(f"partition_key of operator {self.operator!r} failed for {shown(key)}: {told}") from None
        if len(self._hashed) >= HASHES_KEPT_MAX:
            self._hashed_before, self._hashed = self._hashed, {}
        self._hashed[key] = hashed
        return hashed

    def partition_of_flat(self, parts: tuple[Any, ...], n_slots: int) -> int:
        """As `partition_of`, of a key as the keys of its rows begin with it: a tuple, for every key type."""
        return self.partition_of(parts if self._parts else parts[0], n_slots)

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


class PartitionNumbers(KeySpace):
    """The keys of the internal operator whose entities are the partitions of another: their numbers, from 0."""

    __slots__ = ()

    def __init__(self, operator: str, n_partitions: int | None) -> None:
        super().__init__(operator, KeyType(int), n_partitions, None)

    def count(self, n_slots: int) -> int:
        """How many partitions there are."""
        return self._n_partitions or n_slots

    def partition_of(self, key: Any, n_slots: int) -> int:
        """The number itself."""
        number: int = key
        return number

    def slots_of(self, keys: Sequence[Key], n_slots: int) -> list[int]:
        """The slot of each partition."""
        return [self.slot_of(key, n_slots) for key in keys]

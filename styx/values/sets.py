"""Sets in values: finding them, and putting them in an order that does not depend on the process.

A set's own order follows its items' hashes, which differ between processes, and a replay must encode the same bytes. A
value that contains a set is copied, never changed.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from styx.values.custom_types import enc_hook

_SCALARS: Final = frozenset({type(None), bool, int, float, str, bytes})
_SORTABLE: Final = ({str}, {int}, {bytes})
_encode = msgspec.msgpack.Encoder(enc_hook=enc_hook).encode
_set = object.__setattr__


def holds_set(value: Any) -> bool:
    """Whether there is a set anywhere in a value that msgspec has encoded: one that does not contain itself."""
    todo = [value]
    while todo:
        each = todo.pop()
        kind = type(each)
        if kind in _SCALARS:
            continue
        if isinstance(each, set | frozenset):
            return True
        if isinstance(each, dict):
            todo += _complex(each.values())
            todo += _complex(each)
        elif isinstance(each, list | tuple):
            todo += _complex(each)
        else:
            todo += [getattr(each, name, None) for name in _fields(kind)]
    return False


def _complex(items: Iterable[Any]) -> list[Any]:
    items = list(items)
    if set(map(type, items)) <= _SCALARS:
        return []
    return items


def in_order(value: Any) -> Any:
    """The value with a sorted list in place of each set; it is encoded as the value is."""
    if not holds_set(value):
        return value
    if isinstance(value, set | frozenset):
        items = [in_order(item) for item in value]
        if set(map(type, items)) in _SORTABLE:
            return sorted(items)
        return sorted(items, key=_encode)
    if isinstance(value, dict):
        return {_key_in_order(key): in_order(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [in_order(item) for item in value]
    changed = copy.copy(value)
    for name in _fields(type(value)):
        item = getattr(value, name, None)
        if holds_set(item):
            if isinstance(changed, msgspec.Struct):
                msgspec.structs.force_setattr(changed, name, in_order(item))
            else:
                _set(changed, name, in_order(item))
    return changed


def _key_in_order(key: Any) -> Any:
    """As `in_order`, and still a key."""
    if isinstance(key, frozenset | tuple) and holds_set(key):
        return tuple(_key_in_order(part) for part in (in_order(key) if isinstance(key, frozenset) else key))
    return key


def _fields(kind: Any) -> tuple[str, ...]:
    fields: tuple[str, ...] | None = getattr(kind, "__struct_fields__", None)
    if fields is not None:
        return fields
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(each.name for each in getattr(kind, "__attrs_attrs__", ()))

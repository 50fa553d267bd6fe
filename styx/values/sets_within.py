"""Whether there is a set anywhere in a value. Each result and each argument that is not plain is asked, so this runs
compiled; it changes nothing, and knows no order of sets (`styx.values.custom_types`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

Parts = Callable[[Any], Iterable[Any]]
_parts_of: Final = msgspec.structs.astuple
_SETS: Final = (set, frozenset)
_STRUCT: Final[Any] = msgspec.Struct
_STRUCT_S_CLASS: Final[Any] = type(msgspec.Struct)


def holds_set(value: Any) -> bool:
    """Whether there is a set anywhere in a value that msgspec has encoded: one that does not contain itself."""
    left: list[Any] = [value]
    known: dict[Any, Parts] = {}
    last: Any = None
    inner: Parts = _parts_of
    while left:
        whole = left.pop()
        kind = type(whole)
        if kind is list:
            items: list[Any] = whole
            for item in items:
                if not _is_plain(item):
                    left.append(item)
            continue
        if kind is tuple:
            parts: tuple[Any, ...] = whole
        else:
            if kind is not last:  # nearly always it is one of a list's rows, which have one class
                found = known.get(kind)
                if found is None:
                    if kind is set or kind is frozenset or issubclass(kind, _SETS):
                        return True
                    found = known[kind] = _inner(kind)
                last, inner = kind, found
            parts = whole if inner is tuple else tuple(inner(whole))
        for part in parts:
            if not _is_plain(part):
                left.append(part)
    return False


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return kind is str or kind is int or value is None or kind is float or kind is bool or kind is bytes


def _inner(kind: Any) -> Parts:
    """A function that gives what is directly in a value of this class, which is no set; `tuple`: it is one itself."""
    if type(kind) is _STRUCT_S_CLASS:
        return _parts_of
    if issubclass(kind, tuple):
        # A subclass can give others when it is walked through than msgspec sees in it.
        return tuple if kind.__iter__ is tuple.__iter__ else iter
    if issubclass(kind, list):
        return iter
    if issubclass(kind, _STRUCT):
        return _parts_of
    if issubclass(kind, dict):
        return _of_dict
    names = fields_of(kind)
    return lambda value: [getattr(value, name, None) for name in names]


def _of_dict(value: Any) -> Iterable[Any]:
    return [*value.values(), *value]


def fields_of(kind: Any) -> tuple[str, ...]:
    """The names of the fields of a Struct, a dataclass or a class of attrs; of any other class none."""
    fields: tuple[str, ...] | None = getattr(kind, "__struct_fields__", None)
    if fields is not None:
        return fields
    if dataclasses.is_dataclass(kind):
        return tuple([field.name for field in dataclasses.fields(kind)])
    return tuple([each.name for each in getattr(kind, "__attrs_attrs__", ())])

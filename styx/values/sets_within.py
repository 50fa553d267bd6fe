"""Whether there is a set anywhere in a value. Each result and each argument that is not plain is asked, so this runs
compiled; it changes nothing, and knows no order of sets (`styx.values.custom_types`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final
from weakref import ref

import msgspec

Parts = Callable[[Any], Iterable[Any]]
_parts_of: Final = msgspec.structs.astuple
_SETS: Final = (set, frozenset)
_STRUCT: Final[Any] = msgspec.Struct
_STRUCT_S_CLASS: Final[Any] = type(msgspec.Struct)
_DATETIME: Final[Any] = datetime  # a name for compiled code, which looks classes up


class _Kind:
    """What is known of a class: whether its values are sets, and what gives what is directly in one; None: nothing is.

    `its_class` is alive as long as the class is, and keeps it from nothing.
    """

    __slots__ = ("is_set", "its_class", "parts")

    def __init__(self, is_set: bool, parts: Parts | None, its_class: Any) -> None:
        self.is_set = is_set
        self.parts: Parts | None = parts
        self.its_class = its_class


_kinds: Final[dict[int, _Kind]] = {}
"""By the class's id, because a class need not be hashable. What is known of a class goes with it, before another class
can get its id.
"""


def holds_set(value: Any) -> bool:
    """Whether there is a set anywhere in a value that msgspec has encoded: one that does not contain itself.

    Declared types do not tell: nothing keeps a set from a field that is declared `int`.
    """
    left: list[Any] = [value]
    last: Any = None
    inner: Parts | None = None
    while left:
        whole = left.pop()
        kind = type(whole)
        if kind is list:
            _add_items(left, whole)
        elif kind is tuple:
            _add_parts(left, whole)
        elif kind is dict:
            _add_entries(left, whole)
        else:
            if kind is not last:  # nearly always it is one of a list's rows, which have one class
                found = _kinds.get(id(kind)) or _learned(kind)
                if found.is_set:
                    return True
                last, inner = kind, found.parts
            if inner is not None:
                _add_parts(left, whole if inner is tuple else tuple(inner(whole)))
    return False


def _add_items(left: list[Any], items: list[Any]) -> None:
    for item in items:
        if not _is_plain(item):
            left.append(item)


def _add_parts(left: list[Any], parts: tuple[Any, ...]) -> None:
    for part in parts:
        if not _is_plain(part):
            left.append(part)


def _add_entries(left: list[Any], entries: dict[Any, Any]) -> None:
    for key, item in entries.items():
        if not _is_plain(key):
            left.append(key)
        if not _is_plain(item):
            left.append(item)


def _learned(kind: Any) -> _Kind:
    at = id(kind)
    is_set = issubclass(kind, _SETS)
    gone = ref(kind, lambda _: _kinds.pop(at, None))
    known = _kinds[at] = _Kind(is_set, None if is_set else _inner(kind), gone)
    return known


def _is_plain(value: Any) -> bool:
    kind = type(value)
    return (
        kind is str
        or kind is int
        or value is None
        or kind is float
        or kind is bool
        or kind is _DATETIME
        or kind is bytes
    )


def _inner(kind: Any) -> Parts | None:
    """A function that gives what is directly in a value of this class, which is no set; `tuple`: it is one itself;
    None: there is nothing in it.
    """
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
    if not names:
        return None
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

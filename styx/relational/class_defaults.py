"""The defaults that msgspec leaves to the class where it decodes a dataclass, made the object's own.

An object without a column of its own would be encoded without it: a row that is read and put again would be stored
without it, as would a result, and both would change with a default in the code. It never decodes anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import inspect

from styx.values.declared_types import nodes_of, plain_class

Complete = Callable[[Any], None]
"""Gives a value, and all that it holds, the defaults that it lacks."""


def class_defaults(info: Any) -> dict[str, Any]:
    """The defaults of a type's own fields that msgspec leaves to the class."""
    if not isinstance(info, inspect.DataclassType):
        return {}
    slots = {name for each in plain_class(info.cls).__mro__ for name in getattr(each, "__slots__", ())}
    fields = [field for field in info.fields if field.name not in slots]
    return {field.name: field.default for field in fields if field.default is not msgspec.NODEFAULT}


def nested_defaults(info: Any) -> Complete | None:
    """What completes the values in the columns of rows of the type; None if none of them can lack a default."""
    if not any(class_defaults(node) for node in nodes_of(info)):
        return None
    whole = _Objects(info, {})
    return whole if whole.has_parts else None


class _Objects:
    """Completes the objects of one class."""

    __slots__ = ("_defaults", "_fields", "_parts")

    def __init__(self, info: Any, known: dict[int, Complete]) -> None:
        known[id(info)] = self
        self._defaults = class_defaults(info)
        self._fields = len(info.fields)
        found = [(field.name, _of(field.type, known)) for field in info.fields]
        self._parts = [(name, part) for name, part in found if part is not None]

    @property
    def has_parts(self) -> bool:
        """Whether something within an object can lack a default."""
        return bool(self._parts)

    def __call__(self, value: Any) -> None:
        if self._defaults and len(value.__dict__) < self._fields:
            for name, default in self._defaults.items():
                value.__dict__.setdefault(name, default)
        for name, part in self._parts:
            part(getattr(value, name))


def _of(node: Any, known: dict[int, Complete]) -> Complete | None:
    """As `nested_defaults`, of the values of a type."""
    if id(node) in known:
        return known[id(node)]
    if not any(class_defaults(each) for each in nodes_of(node)):
        return None
    if isinstance(node, inspect.DataclassType | inspect.StructType):
        return _Objects(node, known)
    if isinstance(node, inspect.Metadata):
        return _of(node.type, known)
    if isinstance(node, inspect.UnionType):
        return _of_union(node, known)
    if isinstance(node, inspect.DictType):
        part = _of(node.value_type, known)
        return None if part is None else _each(part, dict.values)
    if isinstance(node, inspect.TupleType):
        parts = [(at, _of(each, known)) for at, each in enumerate(node.item_types)]
        return _places([(at, part) for at, part in parts if part is not None])
    if isinstance(node, inspect.NamedTupleType | inspect.TypedDictType):
        return _of_fields(node, known)
    part = _of(getattr(node, "item_type", None), known)
    return None if part is None else _each(part, iter)


def _each(part: Complete, values_of: Callable[[Any], Iterable[Any]]) -> Complete:
    def complete(value: Any) -> None:
        for each in values_of(value):
            part(each)

    return complete


def _places(parts: list[tuple[int, Complete]]) -> Complete:
    def complete(value: Any) -> None:
        for at, part in parts:
            part(value[at])

    return complete


def _of_fields(node: inspect.NamedTupleType | inspect.TypedDictType, known: dict[int, Complete]) -> Complete:
    """As `_of`; such a type can contain itself."""
    parts: list[tuple[Any, Complete]] = []
    by_place = isinstance(node, inspect.NamedTupleType)
    known[id(node)] = complete = _places(parts) if by_place else _entries(parts)
    for at, field in enumerate(node.fields):
        part = _of(field.type, known)
        if part is not None:
            parts.append((at if by_place else field.name, part))
    return complete


def _entries(parts: list[tuple[str, Complete]]) -> Complete:
    def complete(value: Any) -> None:
        for name, part in parts:
            if name in value:
                part(value[name])

    return complete


def _of_union(node: inspect.UnionType, known: dict[int, Complete]) -> Complete:
    """By the class of the value: a union has one type of objects for each, and one of each kind of collection."""
    parts: dict[type, Complete] = {}
    for each in node.types:
        bare: Any = each.type if isinstance(each, inspect.Metadata) else each
        part = _of(bare, known)
        if part is not None:
            parts[_COLLECTIONS.get(type(bare)) or plain_class(bare.cls)] = part

    def complete(value: Any) -> None:
        part = parts.get(type(value))
        if part is not None:
            part(value)

    return complete


_COLLECTIONS: dict[type[inspect.Type], type] = {
    inspect.ListType: list,
    inspect.VarTupleType: tuple,
    inspect.TupleType: tuple,
    inspect.SetType: set,
    inspect.FrozenSetType: frozenset,
    inspect.DictType: dict,
    inspect.TypedDictType: dict,
}

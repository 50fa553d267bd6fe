"""Settled types: declared state types for which the classes of a value's parts prove that the value comes back
unchanged.

A value of a settled type need not be decoded again to check it. A type is settled if msgspec alone reads and writes it,
and if only the classes of its parts matter: a `msgspec.Struct` of plain fields, enums of texts or numbers, lists of
plain items and Structs of such, or one plain type. A type that is not listed here is not settled.
"""

from __future__ import annotations

from datetime import datetime
from enum import EnumMeta, Flag
from inspect import getattr_static
from types import MemberDescriptorType
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect

_PLAIN: Final = (
    (inspect.NoneType(), type(None)),
    (inspect.BoolType(), bool),
    (inspect.IntType(), int),
    (inspect.FloatType(), float),
    (inspect.StrType(), str),
    (inspect.BytesType(), bytes),
)
"""Each has a form of its own in msgpack, so that none is taken for another where a union allows both."""
_OWN_WAYS: Final = ("__post_init__", "__eq__", "__getattribute__", "__getattr__", "model_fields")
"""Definitions by which a Struct's or an enum's class is not settled: its author's code would run."""

Kinds = tuple[type, type]
"""The two classes that a value may be of; one twice if there is one only."""


class Settled(NamedTuple):
    """A value of exactly this class comes back if its fields, in order, are of these kinds; None: it has no fields.

    `items`: for each field, of which class all items of its list are; None: it has no list. `inner`: for each field,
    the condition of its Struct; None: it has none.
    """

    kind: type
    fields: list[Kinds] | None
    items: list[type | None]
    inner: list[Settled | None]


def settled(declared: Any) -> Settled | None:
    """The condition on which a value of this type comes back unchanged; None if the type is not settled."""
    node = inspect.type_info(declared)
    if not isinstance(node, inspect.StructType):
        kind = _plain(node)
        return None if kind is None else Settled(kind, None, [], [])
    return _struct(node, ())


def _struct(node: inspect.StructType, around: tuple[type, ...]) -> Settled | None:
    """Of a Struct within those `around` it: one that can contain itself is not settled."""
    if node.cls in around or not _is_msgspecs_alone(node.cls):
        return None
    if [field.name for field in node.fields] != list(node.cls.__struct_fields__):
        return None
    fields: list[Kinds] = []
    inner: list[Settled | None] = []
    for field in node.fields:
        within = _struct_of(field.type)
        certain = None if within is None else _struct(within, (*around, node.cls))
        kinds = _kinds(field.type) if certain is None else _kinds_of(field.type, certain.kind)
        if kinds is None:
            return None
        fields.append(kinds)
        inner.append(certain)
    return Settled(node.cls, fields, [_item_kind(field.type) for field in node.fields], inner)


def _struct_of(node: Any) -> inspect.StructType | None:
    """The one Struct that a field is, or is if it is not None."""
    types = node.types if isinstance(node, inspect.UnionType) else (node,)
    structs = [each for each in types if isinstance(each, inspect.StructType)]
    others = len(types) - len(structs) - (inspect.NoneType() in types)
    return structs[0] if len(structs) == 1 and not others else None


def _kinds_of(node: Any, struct: type) -> Kinds:
    return (struct, type(None)) if isinstance(node, inspect.UnionType) else (struct, struct)


def _is_msgspecs_alone(cls: Any) -> bool:
    if type(cls) is not type(msgspec.Struct):
        return False
    own = [each for each in cls.__mro__ if each not in msgspec.Struct.__mro__]  # also classes behind Struct
    if any(name in vars(each) for each in own for name in _OWN_WAYS):
        return False
    return all(isinstance(getattr_static(cls, name), MemberDescriptorType) for name in cls.__struct_fields__)


def _kinds(node: Any) -> Kinds | None:
    if node == inspect.DateTimeType():
        return datetime, datetime
    if _item_kind(node) is not None:
        return list, list
    types = node.types if isinstance(node, inspect.UnionType) else (node,)
    if len(types) == 2 and inspect.NoneType() in types and inspect.DateTimeType() in types:
        return datetime, type(None)
    enums = [each.cls for each in types if isinstance(each, inspect.EnumType)]
    if enums:
        if len(enums) + (inspect.NoneType() in types) < len(types) or not _members_come_back(enums[0]):
            return None
        return enums[0], enums[0] if len(types) == 1 else type(None)
    kinds = [_plain(each) for each in types]
    if not 1 <= len(kinds) <= 2:
        return None
    first, last = kinds[0], kinds[-1]
    return None if first is None or last is None else (first, last)


def _members_come_back(cls: Any) -> bool:
    """Whether each member of an enum comes back as itself. Its members are texts or numbers, which nobody can change;
    else whether they come back would depend on what is in them.
    """
    if type(cls) is not EnumMeta or not issubclass(cls, str | int) or issubclass(cls, Flag):
        return False
    own = [each for each in cls.__mro__ if each.__module__ not in ("enum", "builtins")]
    if any(name in vars(each) for each in own for name in _OWN_WAYS):
        return False
    members: Any = cls
    try:
        decode = msgspec.msgpack.Decoder(members).decode
        return all(decode(msgspec.msgpack.encode(member)) is member for member in members)
    except Exception:  # noqa: BLE001 - msgspec refuses the enum, or the author's code runs after all
        return False


def _item_kind(node: Any) -> type | None:
    return next((kind for each, kind in _PLAIN if node == inspect.ListType(each)), None)


def _plain(node: Any) -> type | None:
    return next((kind for each, kind in _PLAIN if node == each), None)

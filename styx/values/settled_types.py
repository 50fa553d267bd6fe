"""Settled types: declared state types for which the classes of a value's parts prove that the value comes back
unchanged.

A value of a settled type need not be decoded again to check it. A type is settled if msgspec alone reads and writes it,
and if only the classes of its parts matter, and bounds of numbers and of texts' lengths: a `msgspec.Struct` of plain
fields, members of enumerations, Structs of such, and lists of plain items or of such Structs; or one plain type. A type
that is not listed here is not settled.
"""

from __future__ import annotations

import enum
from datetime import datetime
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
"""Definitions by which a Struct's class is not settled: its author's code would run."""

BOUND_MAX: Final = 2**60
"""In place of a bound that is not declared. Of what is beyond, the decoded form tells."""
_encode = msgspec.msgpack.Encoder().encode

_PYTHONS_OWN: Final = (enum.Enum, enum.IntEnum, enum.StrEnum, enum.ReprEnum, int, str, object)
_MEMBERS_OWN_WAYS: Final = ("_missing_", "value", "_value_", "__eq__", "__getattribute__", "__getattr__")
"""As `_OWN_WAYS`, of an enumeration."""

Kinds = tuple[type, type]
"""The two classes that a value may be of; one twice if there is one only."""
Bounds = tuple[int, int]
"""The lowest and the highest number that may be, or length of a text."""


class Settled(NamedTuple):
    """A value of exactly this class comes back if its fields, in order, are of these kinds; None: it has no fields.

    `items`: for each field, of which class all items of its list are; None: it has no list of plain items. `inner`: for
    each field, the condition of its Struct; None: it has none. `listed`: for each field, the condition of each Struct
    of its list. `bounds`: for each field, those of what is of the first of its kinds; None: there are none.
    """

    kind: type
    fields: list[Kinds] | None
    items: list[type | None]
    inner: list[Settled | None]
    listed: list[Settled | None]
    bounds: list[Bounds | None]


def settled(declared: Any) -> Settled | None:
    """The condition on which a value of this type comes back unchanged; None if the type is not settled."""
    node = inspect.type_info(declared)
    if not isinstance(node, inspect.StructType):
        kind = _plain(node)
        return None if kind is None else Settled(kind, None, [], [], [], [])
    return _struct(node, ())


def _struct(node: inspect.StructType, around: tuple[type, ...]) -> Settled | None:
    """Of a Struct within those `around` it: one that can contain itself is not settled."""
    if node.cls in around or not _is_msgspecs_alone(node.cls):
        return None
    if [field.name for field in node.fields] != list(node.cls.__struct_fields__):
        return None
    certain = Settled(node.cls, [], [], [], [], [])
    for field in node.fields:
        if not _add_field(certain, field.type, (*around, node.cls)):
            return None
    return certain


def _add_field(certain: Settled, node: Any, around: tuple[type, ...]) -> bool:
    """Adds the condition on a field of a Struct; returns False if its type is not settled."""
    within, listed = _struct_of(node), _listed_struct(node)
    inner = None if within is None else _struct(within, around)
    each = None if listed is None else _struct(listed, around)
    bare, bounds = _without_bounds(node)
    kinds: Kinds | None = (list, list)
    if each is None:
        kinds = _kinds(bare) if inner is None else _kinds_of(node, inner.kind)
    if kinds is None:
        return False
    assert certain.fields is not None
    certain.fields.append(kinds)
    certain.items.append(_item_kind(node))
    certain.inner.append(inner)
    certain.listed.append(each)
    certain.bounds.append(bounds)
    return True


def _struct_of(node: Any) -> inspect.StructType | None:
    """The one Struct that a field is, or is if it is not None."""
    types = node.types if isinstance(node, inspect.UnionType) else (node,)
    structs = [each for each in types if isinstance(each, inspect.StructType)]
    others = len(types) - len(structs) - (inspect.NoneType() in types)
    return structs[0] if len(structs) == 1 and not others else None


def _listed_struct(node: Any) -> inspect.StructType | None:
    """The Struct that each item of a list is, whatever the list's length."""
    if isinstance(node, inspect.ListType) and isinstance(node.item_type, inspect.StructType):
        return node.item_type if node == inspect.ListType(node.item_type) else None
    return None


def _without_bounds(node: Any) -> tuple[Any, Bounds | None]:
    """A type of numbers or texts, which may be None, and its bounds if it has any; other types as they are."""
    if isinstance(node, inspect.UnionType):
        others = [each for each in node.types if each != inspect.NoneType()]
        if len(others) == 1:
            bare, bounds = _without_bounds(others[0])
            if bounds is not None:
                return inspect.UnionType((bare, inspect.NoneType())), bounds
    elif isinstance(node, inspect.IntType) and node.multiple_of is None and node != inspect.IntType():
        low = max(-BOUND_MAX if node.ge is None else node.ge, -BOUND_MAX if node.gt is None else node.gt + 1)
        high = min(BOUND_MAX if node.le is None else node.le, BOUND_MAX if node.lt is None else node.lt - 1)
        return inspect.IntType(), (low, high)
    elif isinstance(node, inspect.StrType) and node.pattern is None and node != inspect.StrType():
        return inspect.StrType(), (node.min_length or 0, BOUND_MAX if node.max_length is None else node.max_length)
    return node, None


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
    members = [each.cls for each in types if isinstance(each, inspect.EnumType)]
    if members:
        one = len(members) == 1 and len(types) - 1 == (inspect.NoneType() in types) and _comes_back(members[0])
        return (members[0], members[0] if len(types) == 1 else type(None)) if one else None
    kinds = [_plain(each) for each in types]
    if not 1 <= len(kinds) <= 2:
        return None
    first, last = kinds[0], kinds[-1]
    return None if first is None or last is None else (first, last)


def _comes_back(kind: Any) -> bool:
    """Whether each member of an enumeration comes back as itself, whatever code of its own there is."""
    own = [each for each in kind.__mro__ if each not in _PYTHONS_OWN]
    if type(kind) is not enum.EnumMeta or any(name in vars(each) for each in own for name in _MEMBERS_OWN_WAYS):
        return False
    decode = msgspec.msgpack.Decoder(kind).decode
    try:
        members: list[Any] = list(kind)
        return all(decode(_encode(member)) is member for member in members)
    except Exception:  # noqa: BLE001 - a member's value can be anything
        return False


def _item_kind(node: Any) -> type | None:
    return next((kind for each, kind in _PLAIN if node == inspect.ListType(each)), None)


def _plain(node: Any) -> type | None:
    return next((kind for each, kind in _PLAIN if node == each), None)

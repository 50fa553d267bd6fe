"""The columns of a stored row that can be in an index, decoded without any code of the row type's author.

Indexes are kept up when a transaction commits, and there is no function then whose time is limited. A `__post_init__`
of a row, or a validator of a model in it, would run there. So for row types with such code, indexes look at what is
stored. Where the author's code would make another row of it, the row is found when the code is deployed
(`styx.schema.row_rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from types import FunctionType
from typing import Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import inspect

from styx.relational.columns import Column
from styx.values.declared_types import nodes_of, plain_class

_OWN_CODE: Final = ("__post_init__", "__getattribute__", "__getattr__")
_TYPES: Final[dict[type[inspect.Type], Any]] = {
    inspect.IntType: int,
    inspect.StrType: str,
    inspect.BoolType: bool,
    inspect.BytesType: bytes,
    inspect.FloatType: float,
    inspect.DecimalType: Decimal,
    inspect.DateType: date,
    inspect.DateTimeType: datetime,
    inspect.UUIDType: UUID,
}


def runs_code(info: inspect.Type) -> bool:
    """Whether code of a type's author runs where a value of it is decoded, or its columns are looked at."""
    return any(
        isinstance(node, inspect.CustomType) or _has_code(plain_class(getattr(node, "cls", None)))
        for node in nodes_of(info)
    )


def _has_code(cls: Any) -> bool:
    if not isinstance(cls, type):
        return False
    return any(isinstance(vars(each).get(name), FunctionType) for each in cls.__mro__ for name in _OWN_CODE)


def columns_decoder(info: Any, columns: Mapping[str, Column]) -> Callable[[bytes], Any]:
    """A function from a row's bytes to an object with its columns that have an order, and no others."""
    struct = isinstance(info, inspect.StructType)
    in_array = struct and info.array_like
    fields: list[Any] = []
    for field in info.fields:
        if columns[field.name].kind is not None:
            fields.append((field.name, _annotation(field.type), _field(field)))
        elif in_array:  # it stands in the way
            fields.append((field.name, msgspec.Raw, _field(field)))
    tag = {"tag": info.tag, "tag_field": info.tag_field} if struct and info.tag is not None else {}
    stored = msgspec.defstruct("Stored", fields, kw_only=True, array_like=in_array, **tag)
    return msgspec.msgpack.Decoder(stored).decode


def _field(field: inspect.Field) -> Any:
    name = field.encode_name
    if field.required:
        return msgspec.field(name=name)
    default = field.default
    if default is msgspec.NODEFAULT:
        default = field.default_factory()
    return msgspec.field(name=name, default=default)


def _annotation(node: Any) -> Any:
    """The type of a column that has an order, without its limits: what is stored has been held to them."""
    if isinstance(node, inspect.Metadata):
        return _annotation(node.type)
    if isinstance(node, inspect.UnionType):
        (bare,) = [each for each in node.types if not isinstance(each, inspect.NoneType)]
        return _annotation(bare) | None
    if isinstance(node, inspect.EnumType):
        return node.cls
    if isinstance(node, inspect.LiteralType):
        return Literal[tuple(node.values)]
    return _TYPES[type(node)]

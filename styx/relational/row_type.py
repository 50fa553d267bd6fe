"""A table's row type: its columns, and how rows become bytes and come back.

A row type is a `msgspec.Struct` or a dataclass. Its annotations are the table's: what may be None, what
`msgspec.Meta` demands, which columns have defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import inspect

from styx.errors import BadQuery, ConfigurationError, UnsupportedValue
from styx.relational.class_defaults import Complete, class_defaults, nested_defaults
from styx.relational.columns import Column
from styx.relational.stored_columns import columns_decoder, runs_code
from styx.values.codec import TypedState, encode_any, shown
from styx.values.declared_types import check_declared, nodes_of, plain_class, type_text


class RowType:
    """The row type `declared` of the table `table`. `encode`, `decode` and `unpack` are as those of `typed`.

    `decode_columns` gives an object with the columns that can be in an index, of which `runs_code` says that it is no
    row, because decoding one runs code of the type's author. `changes_alone`: a row that is changed runs none either,
    so its other columns stay as they are. `set_column` sets a column, also of a frozen row, without code of the app.

    Raises `ConfigurationError` if it is none.
    """

    __slots__ = (
        "_replace",
        "changes_alone",
        "columns",
        "declared",
        "decode",
        "decode_columns",
        "name",
        "runs_code",
        "set_column",
        "table",
        "typed",
        "unpack",
    )

    def __init__(self, table: str, declared: Any) -> None:
        try:
            info: Any = inspect.type_info(declared)
        except Exception as error:  # noqa: BLE001 - whatever msgspec says is the declaration's fault
            raise ConfigurationError(f"the row type {shown(declared)}: {error}") from None
        if not isinstance(info, inspect.StructType | inspect.DataclassType):
            raise ConfigurationError(f"a row type is a msgspec.Struct or a dataclass, not {type_text(declared)}")
        try:
            check_declared(declared)
        except ConfigurationError as error:
            raise ConfigurationError(f"the row type {type_text(declared)}: {error}") from None
        _check_defaults(declared, info)
        if isinstance(info, inspect.DataclassType):
            fixed = [field.name for field in dataclasses.fields(info.cls) if not field.init]
            if fixed:
                raise ConfigurationError(
                    f"the row type {type_text(declared)}: {fixed[0]} has init=False, so no update could make a row "
                    "anew; leave init= out, or make it a property"
                )
        self.table = table
        self.declared: type = info.cls
        self.name = type_text(declared)
        unset = _may_be_unset(info)
        self.columns: dict[str, Column] = {
            field.name: Column(field.name, field.type, field.name in unset) for field in info.fields
        }
        self.typed = TypedState(declared, "row type")
        self.decode: Callable[[bytes], Any] = self.typed.decode
        self.unpack: Callable[[bytes], Any] = self.typed.unpack
        self.runs_code = runs_code(info)
        self.decode_columns: Callable[[bytes], Any] = (
            columns_decoder(info, self.columns) if self.runs_code else self.typed.decode
        )
        nested = nested_defaults(info)
        defaults = class_defaults(info)
        if nested is not None:
            self.decode = _completed(self.typed.decode, nested)
            self.unpack = _completed(self.typed.unpack, nested)
        elif defaults:
            self.decode = _whole(self.typed.decode, defaults, len(self.columns))
            self.unpack = _whole(self.typed.unpack, defaults, len(self.columns))
        struct = isinstance(info, inspect.StructType)
        self._replace: Callable[..., Any] = msgspec.structs.replace if struct else dataclasses.replace
        self.set_column: Callable[[Any, str, Any], None] = (
            msgspec.structs.force_setattr if struct else object.__setattr__
        )
        self.changes_alone = struct and not self.runs_code

    def encode(self, row: Any) -> bytes:
        """A row's bytes; raises `UnsupportedValue` for what is no row, or would not come back as it is."""
        if type(row) is not self.declared:
            make = f": write {self.name}(…)" if isinstance(row, dict | list | tuple) else ""
            raise UnsupportedValue(f"table {self.table} takes rows of type {self.name}, got {shown(row)}{make}")
        try:
            typed = self.typed
            return typed.encode(row)
        except UnsupportedValue as error:
            raise UnsupportedValue(f"table {self.table}: a row{error.path}: {error}") from None

    def has_bytes(self, row: Any, data: bytes) -> bool:
        """Whether the row is, in all its columns, the one of which `data` are the bytes."""
        pack, decode = self.typed.pack, self.decode
        try:
            # Bytes of a row that was given as 0.1 for a Decimal are others than those of the row that is read.
            packed = pack(row)
            return packed == data or packed == pack(decode(data))
        except Exception:  # noqa: BLE001 - the row may hold anything by now
            return False

    def changed(self, row: Any, changes: dict[str, Any]) -> Any:
        """A copy of the row with other values in some columns; raises `BadQuery` for a column that it has not."""
        for name in changes:
            if name not in self.columns:
                raise BadQuery(self.no_column(name))
        replace = self._replace
        return replace(row, **changes)

    def no_column(self, name: Any) -> str:
        """What is said of a column that the table does not have."""
        return f"table {self.table} has no column {shown(name)}; it has: {', '.join(self.columns)}"

    def default_of(self, name: str) -> Any:
        """The default of a column; raises `LookupError` if it has none."""
        for field in inspect.type_info(self.declared).fields:  # type: ignore[attr-defined]  # a Struct or dataclass
            if field.name == name:
                if field.default is not msgspec.NODEFAULT:
                    return field.default
                if field.default_factory is not msgspec.NODEFAULT:
                    return field.default_factory()
        raise LookupError(name)


def _completed(decode: Callable[[bytes], Any], complete: Complete) -> Callable[[bytes], Any]:
    def completed(data: bytes) -> Any:
        row = decode(data)
        complete(row)
        return row

    return completed


def _whole(decode: Callable[[bytes], Any], defaults: dict[str, Any], columns: int) -> Callable[[bytes], Any]:
    """As `_completed`, of rows that hold no objects which could lack something: the usual ones."""

    def whole(data: bytes) -> Any:
        row = decode(data)
        own = row.__dict__
        if len(own) < columns:
            for name, default in defaults.items():
                own.setdefault(name, default)
        return row

    return whole


def _may_be_unset(info: Any) -> set[str]:
    """The columns whose types allow `msgspec.UNSET`."""
    if isinstance(info, inspect.StructType):
        return {field.name for field in msgspec.structs.fields(info.cls) if _allows_unset(field.type)}
    try:
        hints = get_type_hints(info.cls, include_extras=True)
    except Exception:  # noqa: BLE001 - msgspec knows names that this does not
        hints = {}
    return {field.name for field in dataclasses.fields(info.cls) if _allows_unset(hints.get(field.name, field.type))}


def _allows_unset(declared: Any) -> bool:
    if isinstance(declared, str):  # nobody could tell what its names stand for
        return "UnsetType" in declared
    if declared is msgspec.UnsetType:
        return True
    return get_origin(declared) in (Annotated, Union, UnionType) and any(map(_allows_unset, get_args(declared)))


def _check_defaults(declared: Any, info: Any) -> None:
    """Refuses defaults that would give a stored row other values than it was inserted with, or that differ at each
    call.
    """
    for node in nodes_of(info):
        if isinstance(node, inspect.StructType) and plain_class(node.cls).__struct_config__.omit_defaults:
            raise ConfigurationError(
                f"{type_text(node.cls)} of the row type {type_text(declared)} has omit_defaults=True: rows would be "
                "stored without the values that are defaults, and would change with a default in the code; leave it out"
            )
    for field in info.fields:
        factory = field.default_factory
        if factory is not msgspec.NODEFAULT and not _gives_the_same(factory):
            raise ConfigurationError(
                f"the row type {type_text(declared)}: the default_factory of column {field.name!r} gives another value "
                "at each call, and a function that runs again must make the same row: give the value in the function, "
                'by ctx.unique_id(), ctx.uuid(), ctx.random() or ctx.now(), or declare auto="unique"'
            )


def _gives_the_same(factory: Any) -> bool:
    try:
        return encode_any(factory(), "a default") == encode_any(factory(), "a default")
    except Exception:  # noqa: BLE001 - it is told where a row is made
        return True

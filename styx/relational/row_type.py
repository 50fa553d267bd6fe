"""A table's row type: its columns, and how rows become bytes and come back.

A row type is a `msgspec.Struct` or a dataclass. Its annotations are the table's: what may be None, what
`msgspec.Meta` demands, which columns have defaults.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import inspect

from styx.errors import BadQuery, ConfigurationError, UnsupportedValue
from styx.relational.columns import Column
from styx.values.codec import TypedState, shown
from styx.values.declared_types import check_declared, type_text


class RowType:
    """The row type `declared` of the table `table`. `encode`, `decode` and `unpack` are as those of `typed`.

    Raises `ConfigurationError` if it is none.
    """

    __slots__ = ("_replace", "columns", "declared", "decode", "name", "table", "typed", "unpack")

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
        self.columns: dict[str, Column] = {field.name: Column(field.name, field.type) for field in info.fields}
        self.typed = TypedState(declared, "row type")
        self.decode: Callable[[bytes], Any] = self.typed.decode
        self.unpack: Callable[[bytes], Any] = self.typed.unpack
        self._replace: Callable[..., Any] = (
            msgspec.structs.replace if isinstance(info, inspect.StructType) else dataclasses.replace
        )

    def encode(self, row: Any) -> bytes:
        """A row's bytes; raises `UnsupportedValue` for what is no row, or would not come back as it is."""
        if type(row) is not self.declared:
            raise UnsupportedValue(f"table {self.table} takes rows of type {self.name}, got {shown(row)}")
        try:
            typed = self.typed
            return typed.encode(row)
        except UnsupportedValue as error:
            raise UnsupportedValue(f"table {self.table}: a row{error.path}: {error}") from None

    def changed(self, row: Any, changes: dict[str, Any]) -> Any:
        """A copy of the row with other values in some columns; raises `BadQuery` for a column that it has not."""
        unknown = [name for name in changes if name not in self.columns]
        if unknown:
            raise BadQuery(self.no_column(unknown[0]))
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

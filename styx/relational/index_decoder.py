"""Decodes of a stored row only the columns that an index needs: an index is kept up at each write of a row, and a row
may be wide.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, get_type_hints

import msgspec

from styx.relational.columns import Column
from styx.relational.row_type import RowType
from styx.values.codec import TypedState


def index_decoder(row_type: RowType, columns: Iterable[Column]) -> Callable[[bytes], Any]:
    """A function from a row's bytes to an object with these columns, whose values are those of
    `row_type.decode_columns`.
    """
    whole = row_type.decode_columns
    narrow = None if row_type.runs_code else _narrow(row_type.declared, {column.name for column in columns})
    if narrow is None:
        return whole
    unpack = TypedState(narrow).unpack

    def decode(data: bytes) -> Any:
        try:
            return unpack(data)
        except Exception:  # noqa: BLE001 - what another version stored, or what does not fit
            return whole(data)

    return decode


def _narrow(declared: Any, wanted: set[str]) -> Any:
    """A type that reads these columns of an encoded row, None if there is none because a tag comes before them."""
    if dataclasses.is_dataclass(declared):
        hints = get_type_hints(declared, include_extras=True)
        return msgspec.defstruct("Narrow", [(name, hints[name]) for name in hints if name in wanted])
    config, fields = declared.__struct_config__, msgspec.structs.fields(declared)
    if config.tag is not None:
        return None
    if config.array_like:
        end = max((at for at, field in enumerate(fields, 1) if field.name in wanted), default=0)
        parts = [(field.name, field.type if field.name in wanted else msgspec.Raw) for field in fields[:end]]
        return msgspec.defstruct("Narrow", parts, array_like=True)
    needed = [field for field in fields if field.name in wanted]
    renamed = {field.name: field.encode_name for field in needed}
    return msgspec.defstruct("Narrow", [(field.name, field.type) for field in needed], rename=renamed)

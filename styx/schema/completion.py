"""Rows that lack columns, stored with the defaults of the version that begins: that which has the columns first.

Without that, a row from before a column would change with each later default of it. What a row has that its type does
not know stays, for a version that goes back. Pure, but for code of row types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

from styx.relational.table import Table
from styx.schema.state_reading import dropped_part
from styx.values.codec import decode_plain
from styx.values.declared_types import nodes_of

_decode_map: Final = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode
_decode_list: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_encode: Final = msgspec.msgpack.Encoder().encode


def completed_rows(
    table: Table, rows: Mapping[Any, bytes], written: Mapping[Any, bytes | None]
) -> dict[Any, bytes | None]:
    """The rows that lack a column, or a field of an object in one, with the defaults; of all others nothing. `written`
    are those that are stored in the place of some of `rows`.

    Rows that the type does not read, as they are or with its defaults, are left as they are: whoever checks the state
    names them. Of a type with code of its author's, and of a row with a part that its type does not have, only columns
    are completed.
    """
    info: Any = inspect.type_info(table.row_type.declared)
    if not any(_may_lack(node) for node in nodes_of(info)):
        return {}
    completed: dict[Any, bytes | None] = {}
    columns = _Columns(table, info)
    decode, pack = table.row_type.decode, table.row_type.typed.pack
    for key, stored in rows.items():
        data = written.get(key, stored)
        if data is None:
            continue
        try:
            if table.row_type.runs_code:
                whole = columns.completed(data)
            else:
                row = decode(data)
                whole = pack(row)
                if whole != data and dropped_part(decode_plain(data), row):
                    whole = columns.completed(data)
            if whole != data:
                decode(whole)  # a default need not be of its column's type
                completed[key] = whole
        except Exception:  # noqa: BLE001 - anything may be stored
            continue
    return completed


def _may_lack(node: Any) -> bool:
    fields = getattr(node, "fields", ())
    return any(isinstance(field, inspect.Field) and not field.required for field in fields)


class _Columns:
    """The columns of a table as rows are stored, in their order, with their encoded defaults; None: it has none that
    could be stored.
    """

    __slots__ = ("_array", "_defaults", "_tagged")

    def __init__(self, table: Table, info: Any) -> None:
        self._array = isinstance(info, inspect.StructType) and info.array_like
        self._tagged = int(self._array and info.tag is not None)
        self._defaults: dict[str, msgspec.Raw | None] = {
            field.encode_name: None if field.required else _default(table, field.name) for field in info.fields
        }

    def completed(self, data: bytes) -> bytes:
        """The row's bytes with the defaults of the columns that it lacks."""
        if self._array:
            values = _decode_list(data)
            lacking = list(self._defaults.values())[len(values) - self._tagged :]
            if None in lacking:  # what is behind it would be taken for it
                del lacking[lacking.index(None) :]
            return _encode([*values, *lacking]) if lacking else data
        stored = _decode_map(data)
        missing = {name: each for name, each in self._defaults.items() if name not in stored and each is not None}
        if not missing:
            return data
        every = {**stored, **missing}
        return _encode({**{name: every[name] for name in self._defaults if name in every}, **every})


def _default(table: Table, column: str) -> msgspec.Raw | None:
    """None for `msgspec.UNSET`, which is not stored, and for what cannot be: nothing checks a default before."""
    try:
        return msgspec.Raw(table.row_type.typed.pack(table.row_type.default_of(column)))
    except Exception:  # noqa: BLE001 - a default can be anything, and its factory raise anything
        return None

"""What a bulk load puts: the states of an operator's entities, or the rows of one of its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from styx.errors import BadArguments, UnsupportedValue
from styx.model.app import App
from styx.model.bulk_load import entity_text, load_arguments
from styx.model.function_spec import LOAD_FUNCTION, LOAD_ROWS_FUNCTION
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.row_access import load_rows_arguments
from styx.model.table_names import holds_rows, owner_of
from styx.relational.table import Table
from styx.values.codec import shown

Encode = Callable[[Any], bytes]


class RowsOf:
    """Stands in an operator's place where rows of a table are loaded; the table is given by itself or by full name.

    Raises `BadArguments` for what is neither.
    """

    __slots__ = ("declared", "name")

    def __init__(self, table: Any) -> None:
        self.declared: Table | None = table if isinstance(table, Table) else None
        self.name: str = table.full_name if isinstance(table, Table) else table
        if not isinstance(self.name, str) or not holds_rows(self.name):
            raise BadArguments(f"a table is a Table, or its full name such as 'cart/items': got {shown(table)}")


class Loaded:
    """What one load puts. `name` is for errors, `operator` the operator's name, `table` the table's own one, "" for
    states. `declared` is the operator if it is known. `encode` gives a value's bytes, and raises `UnsupportedValue`.
    """

    __slots__ = ("declared", "encode", "name", "operator", "table")

    def __init__(self, name: str, declared: Operator | None, encode: Encode) -> None:
        self.name = name
        self.operator, _, self.table = name.partition("/")
        self.declared = declared
        self.encode = encode

    @property
    def function(self) -> str:
        """The built-in function that a chunk is a request for."""
        return LOAD_ROWS_FUNCTION if self.table else LOAD_FUNCTION

    def arguments(self, pairs: Sequence[bytes], replace: bool) -> bytes:
        """The function's arguments for encoded pairs of one slot."""
        return load_rows_arguments(self.table, pairs, replace) if self.table else load_arguments(pairs, replace)

    def encoded(self, key: Key, value: Any) -> bytes:
        """The bytes of the value that goes with `key`; raises `BadArguments` naming the key."""
        try:
            encode = self.encode
            return encode(value)
        except UnsupportedValue as error:
            raise BadArguments(f"{entity_text(self.name, key)} cannot be loaded: {error}") from None


def what_is_loaded(wanted: Any, app: App | None, encode_unknown: Encode) -> Loaded:
    """What a load was given: an operator by itself or by name, or `RowsOf`. `app` is asked for what is given by name.

    `encode_unknown` is for values of what stays unknown. Raises `UnknownOperator` or `BadArguments`.
    """
    if isinstance(wanted, RowsOf):
        table = wanted.declared
        if app is not None:
            table = app.declared_table(wanted.name)
        declared = None if app is None else app.operator(owner_of(wanted.name))
        return Loaded(wanted.name, declared, encode_unknown if table is None else table.encode_state)
    if isinstance(wanted, str) and app is not None:
        wanted = app.operator(wanted)
    if isinstance(wanted, Operator):
        return Loaded(wanted.name, wanted, wanted.encode_state)
    if not isinstance(wanted, str):
        raise BadArguments(f"the operator is an Operator or its name, got {shown(wanted)}")
    return Loaded(wanted, None, encode_unknown)

"""What a bulk load puts: the states of an operator's entities, or the rows of one of its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from styx.errors import BadArguments, UnknownOperator, UnsupportedValue
from styx.model.app import App
from styx.model.bulk_load import entity_text, load_arguments
from styx.model.function_spec import LOAD_FUNCTION, LOAD_ROWS_FUNCTION
from styx.model.operator import Operator
from styx.model.partitioning import Key
from styx.model.row_load import load_rows_arguments
from styx.model.table_names import holds_rows, owner_of
from styx.relational.table import Table
from styx.values.codec import shown


class RowsOf:
    """Stands in the place of an operator where rows are loaded: a table by itself, or by its full name."""

    __slots__ = ("declared", "name")

    def __init__(self, table: Table[Any] | str) -> None:
        """Raises `BadArguments` for what is no table and no name of one."""
        self.declared = table if isinstance(table, Table) else None
        self.name = table.full_name if isinstance(table, Table) else table
        if not isinstance(self.name, str) or not holds_rows(self.name):
            raise BadArguments(
                f"the table is a Table, or its full name such as 'cart/items': got {shown(table)}"
            )


class Loaded:
    """What one load puts. `name` is for errors, `operator` the operator's name, and `declared` itself if it is known.

    `encode`: a state's or row's bytes; raises `UnsupportedValue`. Of what is not known here, values must be plain data.
    """

    __slots__ = ("_table", "declared", "encode", "name", "operator")

    def __init__(
        self, name: str, declared: Operator | None, table: Table[Any] | None, encode_unknown: Callable[[Any], bytes]
    ) -> None:
        self.name = name
        self.operator = owner_of(name)
        self.declared = declared
        self._table = name[len(self.operator) + 1 :]
        self.encode: Callable[[Any], bytes] = encode_unknown
        if table is not None:
            self.encode = table.encode_state
        elif declared is not None and not self._table:
            self.encode = declared.encode_state

    @property
    def table(self) -> str:
        """The table's own name; "" for states."""
        return self._table

    @property
    def function(self) -> str:
        """The built-in function that a chunk is a request for."""
        return LOAD_ROWS_FUNCTION if self._table else LOAD_FUNCTION

    def arguments(self, pairs: Sequence[bytes], replace: bool) -> bytes:
        """The function's arguments for encoded pairs of one slot."""
        return load_rows_arguments(self._table, pairs, replace) if self._table else load_arguments(pairs, replace)

    def encoded(self, key: Key, value: Any) -> bytes:
        """The bytes of one pair's value; raises `BadArguments` naming its key."""
        try:
            encode = self.encode
            return encode(value)
        except UnsupportedValue as error:
            raise BadArguments(f"{entity_text(self.name, key)} cannot be loaded: {error}") from None


def what_is_loaded(
    operator: Operator | str | RowsOf, app: App | None, encode_unknown: Callable[[Any], bytes]
) -> Loaded:
    """What `operator`, given as a client's method takes it, names; `app`: where names are looked up, if there is one.

    Raises `UnknownOperator`, or `BadArguments` for a table that the app does not have.
    """
    if not isinstance(operator, RowsOf):
        if isinstance(operator, str) and app is not None:
            operator = app.operator(operator)
        return Loaded(*((operator.name, operator) if isinstance(operator, Operator) else (operator, None)), None, encode_unknown)

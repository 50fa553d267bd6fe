"""The state of all entities of a marketplace at one moment, with their rows. It keeps them packed: an hour's orders are
millions of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Final

import msgspec

from styx import Operator
from styx.model.app import App
from styx.model.table_names import holds_rows, holds_values, row_key
from styx.relational.table import Table

_BY_ORDER_MAX: Final = 256
"""Entities of which the rows are kept by order."""

_encode = msgspec.msgpack.Encoder().encode


class State:
    """Values of entities by operator and key, and rows of an entity by table and key, in the order of their keys."""

    def __init__(self) -> None:
        self._values: dict[str, dict[Any, Any]] = {}
        self._rows: dict[str, dict[Any, bytes]] = {}
        self.has_views = False
        """Whether rows of views were read: engines and snapshots have them, clients read none."""
        self._by_order: dict[tuple[str, Any], dict[int, list[Any]]] = {}

    # Reading -----------------------------------------------------------------------------------------------

    def value(self, operator: Operator[Any, Any] | str, key: Any) -> Any:
        """The entity's state; None if it has none."""
        return self._values.get(_name(operator), {}).get(key)

    def values(self, operator: Operator[Any, Any] | str) -> dict[Any, Any]:
        """All entities of the operator that have state."""
        return self._values.get(_name(operator), {})

    def rows(self, table: Table, key: Any) -> list[Any]:
        """The entity's rows."""
        packed = self._rows.get(table.full_name, {}).get(key)
        return [] if packed is None else _decoder(table)(packed)

    def rows_of_order(self, table: Table, key: Any, order_id: int) -> list[Any]:
        """Those of the entity's rows that are of this order; cheap for one entity after the other."""
        found = self._by_order.get((table.full_name, key))
        if found is None:
            if len(self._by_order) >= _BY_ORDER_MAX:
                del self._by_order[next(iter(self._by_order))]
            found = self._by_order[table.full_name, key] = {}
            for row in self.rows(table, key):
                found.setdefault(row.order_id, []).append(row)
        return found.get(order_id, [])

    def keys(self, table: Table) -> list[Any]:
        """The entities that have rows in the table."""
        return list(self._rows.get(table.full_name, {}))

    def all_rows(self, table: Table) -> Iterator[tuple[Any, Any]]:
        """All rows, each with its entity's key."""
        for key in self.keys(table):
            for row in self.rows(table, key):
                yield key, row

    # Filling -----------------------------------------------------------------------------------------------

    def put_value(self, operator: Operator[Any, Any] | str, key: Any, value: Any) -> None:
        """Sets an entity's state; None takes it away."""
        values = self._values.setdefault(_name(operator), {})
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value

    def put_rows(self, table: Table, key: Any, rows: Iterable[Any]) -> None:
        """Sets an entity's rows; none takes them away."""
        found = list(rows)
        self._by_order.clear()
        entities = self._rows.setdefault(table.full_name, {})
        if found:
            entities[key] = _encode(found)
        else:
            entities.pop(key, None)

    def copy(self) -> State:
        """Another one, which may be changed."""
        made = State()
        made.has_views = self.has_views
        made._values = {name: dict(values) for name, values in self._values.items()}
        made._rows = {name: dict(rows) for name, rows in self._rows.items()}
        return made


def state_of(app: App, entries: Iterable[tuple[tuple[str, Any], bytes]]) -> State:
    """The state in stored entries, as an engine and its snapshots keep them: by (operator or table, key)."""
    made = State()
    made.has_views = True
    rows: dict[tuple[str, Any], list[tuple[Any, Any]]] = {}
    for (name, key), data in entries:
        table = app.tables.get(name)
        if table is not None and holds_rows(name):
            entity, primary = row_key(app.operators[table.operator], key)
            rows.setdefault((name, entity), []).append((primary, table.row_type.decode(data)))
        elif holds_values(name) and name in app.operators:
            made.put_value(name, key, app.operators[name].decode_state(data))
    for (name, entity), found in rows.items():
        found.sort(key=lambda each: each[0])
        made.put_rows(app.tables[name], entity, [row for _, row in found])
    return made


def _name(operator: Operator[Any, Any] | str) -> str:
    return operator if isinstance(operator, str) else operator.name


@cache
def _decoder(table: Table) -> Any:
    return msgspec.msgpack.Decoder(list[table.row_type.declared]).decode  # type: ignore[name-defined]

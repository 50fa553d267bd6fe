"""A worker's committed state as users see it: by operator or table, and key. Reads only, between two passes of the
engine. What they find is committed, and may be of an epoch that has not closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from styx.errors import UnsupportedValue
from styx.model.group_rows import stored_ends, with_ends
from styx.model.operator import Operator
from styx.model.table_names import entry_name
from styx.relational.table import Table
from styx.state.table import NEWEST
from styx.values.codec import shown
from styx.worker.worker import Worker


class CommittedState:
    """What an engine shows of its `worker`'s state."""

    worker: Worker

    def encoded_state(self) -> dict[tuple[str, Any], bytes]:
        """All entities' committed state by (operator, key), encoded; a copy."""
        return encoded_state(self.worker)

    def decoded_state(self) -> dict[tuple[str, Any], Any]:
        """The same, decoded, but for operators that the app does not have; raises `UnsupportedValue`."""
        return decoded_state(self.worker)

    def entity(self, operator: str, key: Any) -> Any:
        """One entity's committed state, decoded; None if it has none. Raises `UnknownOperator`, `BadKey`."""
        return entity(self.worker, operator, key)

    def rows(self, table: Table | str, key: Any) -> list[Any]:
        """One entity's committed rows in a table, decoded, in order of their primary keys. Raises `UnknownOperator`,
        `BadArguments`, `BadKey`.
        """
        return rows(self.worker, table, key)


def encoded_state(worker: Worker) -> dict[tuple[str, Any], bytes]:
    """All that is stored by (operator or table, key), encoded; a copy."""
    state: dict[tuple[str, Any], bytes] = {}
    for slot in worker.slots.values():
        state.update(slot.state.entities(NEWEST))
    return state


def decoded_state(worker: Worker) -> dict[tuple[str, Any], Any]:
    """All entities' state by (operator, key), and all rows by (table's full name, key), but those of operators and
    tables that the app does not have or has not declared: what the engine keeps for an index or a view elsewhere is not
    the app's. The key of a row is its entity's, flat, and its primary key.

    Raises `UnsupportedValue` that names the entity or row that does not fit its type.
    """
    app = worker.app
    state: dict[tuple[str, Any], Any] = {}
    for slot in worker.slots.values():
        stored = slot.state.at(NEWEST)
        for name, entries in stored.items():
            declared = app.operators.get(name)
            table = app.tables.get(name)
            if declared is not None:
                state.update({(name, key): _decoded(declared, key, data) for key, data in entries.items()})
            elif table is not None:
                found = zip(entries, _decoded_rows(table, list(entries), stored), strict=True)
                state.update({(name, key): row for key, row in found})
    return state


def entity(worker: Worker, operator: str, key: Any) -> Any:
    """One entity's state, decoded; None if it has none. Raises `UnknownOperator`, `BadKey`."""
    declared = worker.app.operator(operator)
    checked = declared.check_key(key)
    slot = worker.slots.get(declared.slot_of(checked, worker.n_slots))
    data = None if slot is None else slot.state.table(declared.name).reader(NEWEST)(checked)
    return None if data is None else _decoded(declared, checked, data)


def rows(worker: Worker, wanted: Table | str, key: Any) -> list[Any]:
    """One entity's rows of a table, decoded, in order of their primary keys; raises `UnknownOperator`,
    `BadArguments`, `BadKey`."""
    app = worker.app
    table = app.declared_table(wanted)
    operator = app.operator(table.operator)
    checked: Any = operator.check_key(key)
    slot = worker.slots.get(operator.slot_of(checked, worker.n_slots))
    entity = checked if type(checked) is tuple else (checked,)
    stored = {} if slot is None else slot.state.at(NEWEST)
    keys = sorted(key for key in stored.get(table.full_name, ()) if key[: table.entity_parts] == entity)
    return _decoded_rows(table, keys, stored)


def _decoded_rows(table: Table, keys: list[Any], stored: Mapping[str, Mapping[Any, bytes]]) -> list[Any]:
    rows = [_decoded_row(table, key, stored[table.full_name][key]) for key in keys]
    view = table.view_rule
    if view is not None and view.rankings:
        ends = stored_ends(view, stored)
        rows = [with_ends(view, row, ends(key)) for key, row in zip(keys, rows, strict=True)]
    return rows


def _decoded_row(table: Table, key: Any, data: bytes) -> Any:
    try:
        return table.row_type.decode(data)
    except Exception as error:  # noqa: BLE001 - a row type's own code can run here
        raise UnsupportedValue(
            f"the stored row {entry_name(table.full_name, key)} does not fit its row type {table.row_type.name}: "
            f"{error}"
        ) from None


def _decoded(operator: Operator, key: Any, data: bytes) -> Any:
    try:
        return operator.decode_state(data)
    except Exception as error:  # noqa: BLE001 - a state type's own code can run here
        entity = f"{operator.name}[{shown(key)}]"
        raise UnsupportedValue(f"the stored state of {entity} does not fit its state_type: {error}") from None

"""A worker's committed state as users see it: by operator and key. Reads only, between two passes of the engine."""

from __future__ import annotations

from typing import Any

from styx.errors import UnsupportedValue
from styx.model.operator import Operator
from styx.state.table import NEWEST
from styx.values.codec import shown
from styx.worker.worker import Worker


def encoded_state(worker: Worker) -> dict[tuple[str, Any], bytes]:
    """All entities' state by (operator, key), encoded; a copy."""
    state: dict[tuple[str, Any], bytes] = {}
    for slot in worker.slots.values():
        state.update(slot.state.entities(NEWEST))
    return state


def decoded_state(worker: Worker) -> dict[tuple[str, Any], Any]:
    """All entities' state by (operator, key), but those of operators that the app does not have.

    Raises `UnsupportedValue` that names the entity whose state does not fit its `state_type`.
    """
    operators = worker.app.operators
    return {
        (name, key): _decoded(operators[name], key, data)
        for (name, key), data in encoded_state(worker).items()
        if name in operators
    }


def entity(worker: Worker, operator: str, key: Any) -> Any:
    """One entity's state, decoded; None if it has none. Raises `UnknownOperator`, `BadKey`."""
    declared = worker.app.operator(operator)
    checked = declared.check_key(key)
    slot = worker.slots.get(declared.slot_of(checked, worker.n_slots))
    data = None if slot is None else slot.state.table(declared.name).reader(NEWEST)(checked)
    return None if data is None else _decoded(declared, checked, data)


def _decoded(operator: Operator, key: Any, data: bytes) -> Any:
    try:
        return operator.decode_state(data)
    except Exception as error:  # noqa: BLE001 - a state type's own code can run here
        entity = f"{operator.name}[{shown(key)}]"
        raise UnsupportedValue(f"the stored state of {entity} does not fit its state_type: {error}") from None

"""A worker's committed state as users see it: by operator and key. Reads only, between two passes of the engine."""

from __future__ import annotations

from typing import Any

from styx.worker.worker import Worker


def encoded_state(worker: Worker) -> dict[tuple[str, Any], bytes]:
    """All entities' state by (operator, key), encoded; a copy."""
    state: dict[tuple[str, Any], bytes] = {}
    for slot in worker.slots.values():
        state.update(slot.user_state())
    return state


def entity(worker: Worker, operator: str, key: Any) -> Any:
    """One entity's state, decoded; None if it has none. Raises `UnknownOperator`, `BadKey`."""
    declared = worker.app.operator(operator)
    checked = declared.check_key(key)
    slot = worker.slots.get(declared.slot_of(checked, worker.n_slots))
    data = None if slot is None else slot.table(declared.name).get(checked)
    return None if data is None else declared.decode_state(data)

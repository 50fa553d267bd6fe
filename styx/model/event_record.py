"""An event as it is handed on, made of what its emission wrote."""

from __future__ import annotations

from typing import Any, Final

from styx.messages import EventRecord
from styx.model.agenda import giver_of
from styx.model.event import decode_emitted
from styx.model.event_place import ELSEWHERE
from styx.model.key_text import key_of

_EPOCH_UNTIL: Final = 12
_TID_AT: Final = slice(13, 29)
"""Where epoch and TID stand in an id that `event_id` made."""


def epoch_of(its_id: str) -> int:
    """The epoch in which an event was emitted."""
    return int(its_id[:_EPOCH_UNTIL], 16)


def event_record(operator: str, written_key: Any, data: bytes, slot: int, epoch: int, phase: int) -> EventRecord:
    """What an emission wrote to the operator's table of events, and which phase of an epoch has committed it."""
    key, its_id = giver_of(written_key)
    if operator == ELSEWHERE.name:
        told: str | int | list[str | int] = key_of(str(key))
    else:
        told = list(key) if isinstance(key, tuple) else key
    emitted = decode_emitted(data)
    tid = tid_of(its_id)
    event, version, giver, time_us, payload = (
        emitted.event,
        emitted.version,
        emitted.operator,
        emitted.time_us,
        emitted.payload,
    )
    return EventRecord(its_id, event, version, epoch, phase, tid, giver, told, time_us, payload, slot)


def tid_of(event_id: str) -> int:
    """The id of the transaction that has emitted an event."""
    return int(event_id[_TID_AT], 16)

"""An event as a record of its Kafka topic, which everybody can read: JSON, with all else in headers; and a mark."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from styx.kafka.appends import NewRecord
from styx.messages import EventRecord
from styx.model.event import Event

ID_HEADER: Final = "styx-id"
MARK_HEADER: Final = "styx-mark"
"""The only header of a mark: all events of epochs up to this one stand before it in its partition."""
CONTENT_TYPE: Final = b"application/json"

_json = msgspec.json.Encoder().encode


def record_of_event(record: EventRecord, event: Event[Any]) -> NewRecord:
    """The key is the entity's: text as it is, a number in decimal, a tuple as a JSON array."""
    key = _json(record.key)
    return (
        record.key.encode() if isinstance(record.key, str) else key,
        event.to_json(record.payload),
        [
            (ID_HEADER, record.id.encode()),
            ("styx-epoch", b"%d" % record.epoch),
            ("styx-phase", b"%d" % record.phase),
            ("styx-tid", b"%d" % record.tid),
            ("styx-version", b"%d" % record.version),
            ("styx-time", b"%d" % record.time_us),
            ("styx-operator", record.operator.encode()),
            ("styx-key", key),
            ("content-type", CONTENT_TYPE),
        ],
    )


def mark_of(epoch: int) -> NewRecord:
    """A record without key and value."""
    return None, None, [(MARK_HEADER, b"%d" % epoch)]


def id_of_record(record: Any) -> str | None:
    """The id of an event that was read from a topic of events; None for a mark, and for what is nothing of ours."""
    return next((value.decode() for name, value in record.headers if name == ID_HEADER and value is not None), None)

"""An event as a record of its Kafka topic, which everybody can read: JSON, with all else in headers; and a mark."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from styx.kafka.appends import NewRecord
from styx.messages import EventRecord
from styx.model import event_topic
from styx.model.event import Event
from styx.model.event_record import epoch_of

CONTENT_TYPE: Final = b"application/json"

_json = msgspec.json.Encoder().encode


def record_of_event(record: EventRecord, event: Event[Any]) -> NewRecord:
    """The key is the entity's: text as it is, a number in decimal, a tuple as a JSON array."""
    key = _json(record.key)
    return (
        record.key.encode() if isinstance(record.key, str) else key,
        event.to_json(record.payload),
        [
            (event_topic.ID, record.id.encode()),
            (event_topic.EPOCH, b"%d" % record.epoch),
            (event_topic.PHASE, b"%d" % record.phase),
            (event_topic.TID, b"%d" % record.tid),
            (event_topic.VERSION, b"%d" % record.version),
            (event_topic.TIME, b"%d" % record.time_us),
            (event_topic.OPERATOR, record.operator.encode()),
            (event_topic.KEY, key),
            ("content-type", CONTENT_TYPE),
        ],
    )


def mark_of(epoch: int) -> NewRecord:
    """A record without key and value."""
    return None, None, [(event_topic.MARK, b"%d" % epoch)]


def id_of_record(record: Any) -> str | None:
    """The id of an event that was read from a topic of events; None for a mark, and for what is nothing of ours."""
    found = next((value for name, value in record.headers if name == event_topic.ID and value is not None), b"")
    its_id = found.decode(errors="replace")
    try:
        epoch_of(its_id)
    except ValueError:
        return None  # anybody who may write to the topic can have put it there
    return its_id

"""An event's place in Kafka, which everybody can read: the topic, and the headers of its records."""

from __future__ import annotations

from typing import Final

ID: Final = "styx-id"
EPOCH: Final = "styx-epoch"
PHASE: Final = "styx-phase"
TID: Final = "styx-tid"
VERSION: Final = "styx-version"
TIME: Final = "styx-time"
OPERATOR: Final = "styx-operator"
KEY: Final = "styx-key"
MARK: Final = "styx-mark"
"""The only header of a mark: all events of epochs up to this one stand before it in its partition."""

HEADERS: Final = {
    ID: "Names this event, and no other one.",
    VERSION: "Of the type.",
    EPOCH: "Of the transaction; with phase and id, its place in the serial order.",
    PHASE: "As above.",
    TID: "The id of the transaction.",
    OPERATOR: "Of the entity that emitted it.",
    KEY: "Of the entity that emitted it, as JSON; the record's key has a text as it is.",
    TIME: "When, in microseconds since 1970.",
}
"""What each header of an event's record says, all of it text."""


def event_topic_name(app: str, event: str) -> str:
    """The name of the topic with an app's events of this name."""
    return f"styx.{app}.events.{event}"

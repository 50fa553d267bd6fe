"""The description of a stream of events in OpenAPI: `GET /v1/events/NAME`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from styx.gateway.json_schemas import Json, Schemas
from styx.model.event import Event

_STREAM: Final = (
    "Server-sent events in the serial order: `id` is the cursor of the event, `data` is JSON. A comment comes when "
    "nothing else does. A connection that breaks is opened again with the last id, and no event is missed."
)
_CODES: Final = ("400", "401", "403", "404", "429", "503")


def event_operation(event: Event[Any], schemas: Schemas, errors: Mapping[str, tuple[str, str]]) -> Json:
    """The operation that reads an event; `errors` has the names of the answers that refuse, by status."""
    return {
        "operationId": f"events.{event.name}",
        "tags": ["events"],
        "summary": f"What committed transactions emit as {event.name}",
        "description": _STREAM,
        "parameters": [
            _parameter(
                "after", "query", "The cursor to go on behind; `end` for those from now on.", {"type": "string"}
            ),
            _parameter("follow", "query", "Whether further ones are waited for.", {"type": "boolean", "default": True}),
            _parameter("Last-Event-ID", "header", "A cursor, which counts more than `after`.", {"type": "string"}),
        ],
        "responses": {
            "200": {
                "description": "They follow.",
                "content": {"text/event-stream": {"schema": envelope(event, schemas)}},
            },
            **{status: {"$ref": f"#/components/responses/{errors[status][0]}"} for status in _CODES},
            "410": {"description": "Events behind the cursor are no longer in the log."},
        },
    }


def envelope(event: Event[Any], schemas: Schemas) -> Json:
    """The schema of what a gateway sends for an event: the value, and where it comes from."""
    number = {"type": "integer"}
    key = {"type": ["string", "integer", "array"], "description": "Of the entity that emitted it."}
    return {
        "type": "object",
        "properties": {
            "event": {"const": event.name},
            "version": {"type": "integer", "description": f"Of the type; now {event.version}."},
            "id": {"type": "string", "description": "Names this event, and no other one."},
            "epoch": number,
            "phase": number,
            "tid": {"type": "integer", "description": "The id of the transaction."},
            "operator": {"type": "string"},
            "key": key,
            "time_us": {"type": "integer", "description": "Microseconds since 1970."},
            "value": schemas.of(event.type),
        },
        "required": ["event", "version", "id", "epoch", "phase", "tid", "operator", "key", "time_us", "value"],
    }


def _parameter(name: str, place: str, description: str, schema: Json) -> Json:
    return {"name": name, "in": place, "description": description, "schema": schema}

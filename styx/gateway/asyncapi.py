"""The AsyncAPI 3.0 description of an app's events: what it emits, on which channels, and of which types.

Built from declarations only. Each event has a channel in Kafka, where a cluster's events are, and one at the gateway.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from styx.gateway.head import EVENTS, PREFIX
from styx.gateway.json_schemas import Json, Schemas
from styx.gateway.openapi_events import envelope
from styx.model.app import App
from styx.model.event import Event
from styx.model.event_topic import HEADERS, event_topic_name

KAFKA: Final = "kafka"
HTTP: Final = "http"

_INFO: Final = (
    "What committed transactions emit, each once, in the serial order of the entity that emits it. In Kafka, records "
    "with the header styx-mark have no value: what was emitted up to that epoch stands before them."
)


def asyncapi(app: App) -> Json:
    """The document, ready to be encoded as JSON. The app has events."""
    events = app.events.values()
    schemas = Schemas(event.type for event in events)
    channels: Json = {}
    operations: Json = {}
    messages: Json = {}
    for event in events:
        for kind in (KAFKA, HTTP):
            name = f"{kind}.{event.name}"
            channels[name] = _channel(app, event, kind)
            operations[f"emit.{name}"] = {
                "action": "send",
                "channel": {"$ref": f"#/channels/{name}"},
                "messages": [{"$ref": f"#/channels/{name}/messages/{event.name}"}],
            }
            messages[name] = _message(event, kind, schemas)
    return {
        "asyncapi": "3.0.0",
        "info": {"title": app.name, "version": "1", "description": _INFO},
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages, "schemas": schemas.components},
    }


def _channel(app: App, event: Event[Any], kind: str) -> Json:
    topic = event_topic_name(app.name, event.name)
    path = f"{PREFIX}{EVENTS}/{quote(event.name)}"
    channel: Json = {
        "address": topic if kind == KAFKA else path,
        "title": event.name,
        "description": f"Version {event.version}" + (", in a cluster" if kind == KAFKA else ", as server-sent events"),
        "messages": {event.name: {"$ref": f"#/components/messages/{kind}.{event.name}"}},
    }
    channel["bindings"] = {"kafka": {"topic": topic}} if kind == KAFKA else {"http": {}}
    return channel


def _message(event: Event[Any], kind: str, schemas: Schemas) -> Json:
    message: Json = {"name": event.name, "title": f"{event.name}, version {event.version}"}
    if kind == KAFKA:
        text = {"type": "string"}
        headers = {name: {**text, "description": told} for name, told in HEADERS.items()}
        return {
            **message,
            "contentType": "application/json",
            "headers": {"type": "object", "properties": headers},
            "payload": schemas.of(event.type),
        }
    return {**message, "contentType": "application/json", "payload": envelope(event, schemas)}

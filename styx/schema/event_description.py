"""The description of an app's events without its code: the schema of each version's values, and whether another version
of the app may replace them.

Readers know an event by its name and version, so one version has one schema, whatever code emits it. A type that
changes gets a higher version; readers of the old one are not asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from styx.model.event import Event
from styx.values.custom_types import is_model, json_schema

_OF_PEOPLE: Final = ("title", "description", "examples")
"""Keys of a schema that say nothing of values."""
_MAPS: Final = ("properties", "$defs", "patternProperties")
"""Keys of a schema whose values are schemas by name."""


class EventDescription(msgspec.Struct, frozen=True, kw_only=True):
    """One event: `schema` is the canonical JSON Schema of the values of this `version`, "" if there is none."""

    version: int
    schema: str


Published = dict[str, dict[str, str]]
"""By event and version, as text, the schemas that were ever deployed."""


def describe_events(events: Mapping[str, Event[Any]]) -> dict[str, EventDescription]:
    """The descriptions of an app's events by their names."""
    return {
        name: EventDescription(version=event.version, schema=canonical(event.type))
        for name, event in sorted(events.items())
    }


def event_schema(declared: Any) -> dict[str, Any]:
    """The JSON Schema of a type, its named parts under `$defs`; empty, which fits anything, if it has none."""
    try:
        return msgspec.json.schema(declared, schema_hook=_of_models)
    except Exception:  # noqa: BLE001 - a type from anywhere; without a schema it is described as anything
        return {}


def canonical(declared: Any) -> str:
    """The schema as a text that changes when the values do: without titles, texts and the names of classes."""
    schema = event_schema(declared)
    names: dict[str, str] = {}
    definitions = schema.pop("$defs", {})
    body = _plain(schema, names)
    parts: dict[str, Any] = {}
    while len(parts) < len(names):  # a part may name further ones
        for name in list(names):
            if names[name] not in parts:
                parts[names[name]] = _plain(definitions.get(name, {}), names)
    return msgspec.json.encode([body, parts], order="deterministic").decode()


def refusal_of_events(published: Published, new: Mapping[str, EventDescription]) -> str | None:
    """Why events as described in `new` may not follow what was `published`; None if they may."""
    for name, event in sorted(new.items()):
        known = published.get(name)
        if not known:
            continue
        schema, newest = known.get(str(event.version)), max(map(int, known))
        if schema is not None and schema != event.schema:
            return (
                f"event {name!r} has another type than the version {event.version} of it that was deployed, and "
                f"readers know it by that number: declare it as Event({name!r}, …, version={newest + 1})"
            )
        if schema is None and event.version < newest:
            return (
                f"event {name!r} has version {event.version}, and version {newest} was deployed: a changed type gets a "
                f"higher version, so declare it as Event({name!r}, …, version={newest + 1})"
            )
    return None


def published_of(events: Mapping[str, EventDescription], before: Published | None = None) -> Published:
    """What is published when these events are deployed behind what was published `before`."""
    found = {name: dict(versions) for name, versions in (before or {}).items()}
    for name, event in events.items():
        found.setdefault(name, {})[str(event.version)] = event.schema
    return found


def encode_published(published: Published) -> bytes:
    """What was published as the store has it."""
    return msgspec.json.encode(published, order="deterministic") if published else b""


def decode_published(data: bytes) -> Published:
    """The published types of what the store has; none if it says nothing that can be read."""
    try:
        return msgspec.json.decode(data, type=Published) if data else {}
    except msgspec.DecodeError:
        return {}


def _of_models(kind: Any) -> dict[str, Any]:
    if not is_model(kind):
        raise NotImplementedError
    schema: dict[str, Any] = json_schema(kind)
    return schema


def _plain(schema: Any, names: dict[str, str]) -> Any:
    if isinstance(schema, list):
        return [_plain(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            name = value.rpartition("/")[2]
            plain[key] = names.setdefault(name, str(len(names)))
        elif key in _MAPS and isinstance(value, dict):
            plain[key] = {name: _plain(each, names) for name, each in value.items()}
        elif key not in _OF_PEOPLE:
            plain[key] = _plain(value, names)
    return plain

"""An event: what an app tells the world beside its state, declared by name and type, and emitted by functions.

Here are the declaration, and what an emission is while it is a write of its transaction (`EmittedEvent`). The commit
hands it on (`styx.worker.emissions`), and no slot keeps it. An event never calls anything by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar, overload

import msgspec

from styx.errors import ConfigurationError
from styx.model.event_form import EventForm
from styx.relational.time_to_live import TTL_MAX, TTL_MIN, is_ttl
from styx.values.codec import shown
from styx.values.declared_types import type_text

EVENTS_SUFFIX: Final = "/<events>"
"""Follows the operator's name in the name of the table that an emission is written to, which no slot keeps."""
RESERVED_OPERATOR: Final = "events"
"""No operator of an app with events: `/v1/events/NAME` is where a gateway has them."""
EVENT_NAME_CHARS_MAX: Final = 100
EVENT_VERSION_MAX: Final = 2**31 - 1
EVENTS_PER_FUNCTION_MAX: Final = 1_000
"""Events that one invocation can emit."""

_NAME: Final = re.compile(r"[A-Za-z0-9._-]++", re.ASCII)

T = TypeVar("T")


class Event(Generic[T]):
    """One kind of event. Its values are of `type`, which is whatever a `state_type` can be.

    `name`: letters, digits, `.`, `_` and `-`, at most 100 of them; the log of an app's events is named after it.
    `version`: a whole number from 1 that says which form of the type a reader sees. `keep`: how long its log keeps
    what was emitted, None for a week. `rows`: for how long an entity also keeps what it has emitted as rows, which
    `ctx.rows(event)` reads (`styx.model.kept_event`); True for ever, False not at all. Raises `ConfigurationError`.
    `form` is what encodes and decodes.
    """

    __slots__ = ("form", "keep", "name", "rows", "type", "version")

    @overload
    def __init__(
        self: Event[T],
        name: str,
        type: type[T],
        *,
        version: int = 1,
        keep: timedelta | None = None,
        rows: timedelta | bool = False,
    ) -> None: ...

    @overload
    def __init__(
        self: Event[Any],
        name: str,
        type: Any,
        *,
        version: int = 1,
        keep: timedelta | None = None,
        rows: timedelta | bool = False,
    ) -> None: ...

    def __init__(
        self,
        name: str,
        type: type[T] | Any,
        *,
        version: int = 1,
        keep: timedelta | None = None,
        rows: timedelta | bool = False,
    ) -> None:
        if not is_event_name(name):
            raise ConfigurationError(
                f"an event's name has 1 to {EVENT_NAME_CHARS_MAX} letters, digits, '.', '_' and '-': got {shown(name)}"
            )
        if version.__class__ is not int or not 1 <= version <= EVENT_VERSION_MAX:
            raise ConfigurationError(
                f"event {name!r}: version= is a whole number from 1 to {EVENT_VERSION_MAX}, got {shown(version)}"
            )
        if keep is not None and (not isinstance(keep, timedelta) or keep <= timedelta(0)):
            raise ConfigurationError(f"event {name!r}: keep= is a timedelta above 0, or None: got {shown(keep)}")
        if rows.__class__ is not bool and not is_ttl(rows):
            raise ConfigurationError(
                f"event {name!r}: rows= is True, False, or a timedelta from {TTL_MIN.seconds} second to {TTL_MAX.days} "
                f"days, such as timedelta(days=90): got {shown(rows)}"
            )
        if type is None or type is Any:
            raise ConfigurationError(f"event {name!r} needs the type of its values, such as a dataclass: got {type}")
        try:
            self.form = EventForm(name, type)
        except Exception as error:  # noqa: BLE001 - whatever msgspec raises for what is no type
            raise ConfigurationError(f"event {name!r} cannot have values of type {shown(type)}: {error}") from None
        self.name = name
        self.type = type
        self.version = version
        self.keep = keep
        self.rows = rows

    @property
    def given(self) -> dict[str, Any]:
        """What it was declared with."""
        return {"name": self.name, "type": self.type, "version": self.version, "keep": self.keep, "rows": self.rows}

    def encode(self, value: T) -> bytes:
        """The msgpack of a value; raises `UnsupportedValue` for what would not come back as what it is, also from JSON,
        and `ValueTooLarge` above `EVENT_BYTES_MAX`.
        """
        return self.form.encode(value)

    def decode(self, payload: bytes) -> T:
        """The value that was emitted; raises `msgspec.DecodeError` for what is none."""
        value: T = self.form.decode(payload)
        return value

    def to_json(self, payload: bytes) -> bytes:
        """The JSON of what was encoded, the same in every process; raises what `decode` and msgspec raise."""
        return self.form.to_json(payload)

    def from_json(self, text: bytes) -> T:
        """The value of its JSON; raises `msgspec.DecodeError` for what is none."""
        value: T = self.form.from_json(text)
        return value

    def __repr__(self) -> str:
        return f"Event({self.name!r}, {type_text(self.type)}, version={self.version})"


class EmittedEvent(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What an emission writes. `operator` is the emitting entity's, and `time_us` what `ctx.now()` was there, in
    microseconds since 1970. The key in the table says the rest: the entity and the id.
    """

    event: str
    version: int
    operator: str
    time_us: int
    payload: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(EmittedEvent).decode


def encode_emitted(emitted: EmittedEvent) -> bytes:
    """The value that an emission writes."""
    return _encode(emitted)


def decode_emitted(data: bytes) -> EmittedEvent:
    """What an emission wrote; raises `msgspec.DecodeError`."""
    return _decode(data)


def events_of(operator: str) -> str:
    """The table that the emissions of the operator's entities are written to."""
    return operator + EVENTS_SUFFIX


def is_event_name(name: Any) -> bool:
    """Whether an event may have this name."""
    return isinstance(name, str) and 0 < len(name) <= EVENT_NAME_CHARS_MAX and _NAME.fullmatch(name) is not None


def no_such_event(app: str, name: Any, events: Iterable[str]) -> str:
    """The error for an event that an app with these `events` does not have."""
    known = ", ".join(sorted(events))
    if not known:
        return f"app {app!r} has no event {shown(name)}, nor any other one: declare them with App(…, events=[…])"
    return f"app {app!r} has no event {shown(name)}; it has: {known}"


def declared_events(app: str, events: Iterable[Any]) -> Mapping[str, Event[Any]]:
    """An app's events by name; raises `ConfigurationError` for what is none, and for two of one name."""
    by_name: dict[str, Event[Any]] = {}
    topics: dict[str, str] = {}
    for event in events:
        if not isinstance(event, Event):
            raise ConfigurationError(f"app {app!r}: {shown(event)} in events= is not an Event")
        if event.name in by_name:
            raise ConfigurationError(f"app {app!r} has two events named {event.name!r}; rename one of them")
        other = topics.setdefault(event.name.replace(".", "_"), event.name)
        if other != event.name:
            raise ConfigurationError(
                f"app {app!r} has events {other!r} and {event.name!r}: names that differ in '.' and '_' alone cannot "
                "both be topics in Kafka; rename one of them"
            )
        by_name[event.name] = event
    return MappingProxyType(by_name)

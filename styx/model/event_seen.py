"""An event as its readers see it: the message that a log of events gives, and the cursor that names its place.

A cursor is a text that sorts as the serial order does, so a reader goes on behind it wherever the event is stored. It
never names an offset of a log.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from styx.errors import BadArguments
from styx.model.limits import EVENT_PLACE_BYTES_MAX
from styx.model.serial_place import PLACE_LETTERS
from styx.values.codec import shown

END: Final = "end"
"""In place of a cursor: only events that are emitted from now on."""

BEGINNING: Final = f"{'0' * 30}.0.{'0' * 8}"
"""The cursor before all events."""

_IN_TRANSACTION: Final = rf"[0-2][0-9a-f]{{16}}\.[{PLACE_LETTERS}]{{1,{EVENT_PLACE_BYTES_MAX}}}+\.[0-9a-f]{{8}}"
_CURSOR: Final = re.compile(rf"[0-9a-f]{{12}}[0-3]{_IN_TRANSACTION}", re.ASCII)
_ID: Final = re.compile(rf"[0-9a-f]{{12}}{_IN_TRANSACTION}", re.ASCII)
_EPOCH_DIGITS: Final = 12
_YEAR_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)


class EventMessage(msgspec.Struct, frozen=True, kw_only=True):
    """An event on its way to a reader; its JSON is what a gateway sends.

    `value` is JSON. `id` is the event's whole place in the serial order, the same in each replay: it is unique, and
    sorts the events of one phase. `(epoch, phase, tid)` is the place of the transaction. `time_us` is `ctx.now()` where
    it was emitted, in microseconds since 1970; `operator` and `key` name the entity that emitted it.
    """

    event: str
    version: int
    id: str
    epoch: int
    phase: int
    tid: int
    operator: str
    key: str | int | list[str | int]
    time_us: int
    value: msgspec.Raw

    @property
    def cursor(self) -> str:
        """The event's place."""
        return cursor_of(self.epoch, self.phase, self.id)


class EventSeen(NamedTuple):
    """An event that a committed transaction has emitted, as `client.events` gives it.

    `value` is of the event's type if the `Event` itself was asked for, and plain data if only its name was. `cursor`
    goes into `after=` to go on behind it. `(epoch, phase, tid)` is the transaction's place in the serial order; `time`
    is `ctx.now()` there, in UTC. `operator` and `key` name the entity that emitted it.
    """

    event: str
    value: Any
    version: int
    id: str
    epoch: int
    phase: int
    tid: int
    operator: str
    key: str | int | tuple[str | int, ...]
    time: datetime
    cursor: str


class EventSource(Protocol):
    """Where a client or a gateway reads events."""

    def read(self, event: str, after: str | None, follow: bool) -> AsyncIterator[list[EventMessage]]:
        """The events of this name behind the cursor `after`, in the serial order, some at a time; None: from the first
        that is kept, `END`: from now on. With `follow` it waits for further ones, else it ends at the last. The first
        list is empty, and comes when it is known from where to read.

        Raises `EventsReleased` if events behind the cursor are gone, and `EventsCut` if it is cut off.
        """
        ...


class EventLog(EventSource, Protocol):
    """Where a gateway reads them."""

    async def last(self, event: str) -> str:
        """A cursor that is behind all events that a reader of `event` can see, or behind all but the last ones: for
        whoever reads what is emitted from now on, and may have to begin again. `BEGINNING` if there are none. Raises
        `EventsCut`.
        """
        ...


def cursor_of(epoch: int, phase: int, event_id: str) -> str:
    """The cursor of an event: its id with the phase behind the epoch."""
    return f"{epoch:0{_EPOCH_DIGITS}x}{phase}{event_id[_EPOCH_DIGITS:]}"


def checked_cursor(after: Any, parameter: str = "after=") -> str | None:
    """`after` if it is None, `END` or a cursor; raises `BadArguments`, which names the `parameter`."""
    if after is None or (type(after) is str and (after == END or _CURSOR.fullmatch(after) is not None)):
        return after
    is_id = type(after) is str and _ID.fullmatch(after) is not None
    hint = ", which is the id of an event: its cursor is told beside it" if is_id else ""
    raise BadArguments(
        f'{parameter} takes the cursor of an event that was read, "{END}" for only those from now on, or nothing for '
        f"all that are kept: got {shown(after)}{hint}"
    )


def seen(message: EventMessage, value: Any) -> EventSeen:
    """What a user gets of a message, with its decoded value."""
    key = message.key
    return EventSeen(
        message.event,
        value,
        message.version,
        message.id,
        message.epoch,
        message.phase,
        message.tid,
        message.operator,
        tuple(key) if isinstance(key, list) else key,
        _YEAR_1970 + timedelta(microseconds=message.time_us),
        message.cursor,
    )

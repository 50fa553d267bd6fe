"""The reader of events that `client.events` returns: an asynchronous iterator over what committed transactions emitted.

It checks what it was asked for, gives values of the event's type, and gives its place back when it is left. Each client
brings the source: where messages come from. Nothing is acknowledged: who reads keeps the cursor.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from styx.errors import BadArguments, EventUnreadable, StyxError
from styx.model.app import App
from styx.model.event import EVENT_NAME_CHARS_MAX, Event, no_such_event
from styx.model.event_seen import END, EventMessage, EventSeen, EventSource, checked_cursor, seen
from styx.values.codec import shown

LISTED_MAX: Final = 1_000_000
"""Events that `await client.events(…, follow=False)` gives at most; above it, read them one by one."""

_decode_plain = msgspec.json.Decoder().decode


class EventReader:
    """The events of one kind, `EventSeen` by `EventSeen`, in the serial order.

    Use it as `async for`; or `await` it for the list of all there are, with `follow=False`. Leaving the loop early is
    fine: `async with` or `aclose()` frees what it holds at once. A wait that is given up, as by `asyncio.wait_for`,
    loses nothing: the next one goes on.
    """

    def __init__(
        self,
        make: Callable[[str | None], AsyncIterator[list[EventMessage]]],
        name: str,
        event: Any,
        after: str | None,
        follow: bool,
    ) -> None:
        self._make = make
        self._after = after
        self._place = after
        self._name = name
        self._event: Event[Any] | None = event if isinstance(event, Event) else None
        self._follow = follow
        self._messages: AsyncIterator[list[EventMessage]] | None = None
        self._read: deque[EventMessage] = deque()
        self._failure: StyxError | None = None
        self._first: Callable[[], Awaitable[None]] | None = None

    def behind(self, first: Callable[[], Awaitable[None]]) -> Self:
        """The same reader, which awaits `first` before it begins."""
        self._first = first
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> EventSeen:
        """The next event. Raises `EventUnreadable`, `EventsReleased`, `EventsCut`, and what the client raises."""
        while not self._read:
            if self._messages is None:
                if self._first is not None:
                    await self._first()
                self._messages = self._make(self._place)
            if self._failure is not None:
                raise self._failure
            try:
                found = await anext(self._messages)
            except StyxError as error:
                self._failure = error  # else the next step would look like the end
                raise
            except asyncio.CancelledError:
                self._given_up()
                raise
            if found:
                self._place = found[-1].cursor
            self._read.extend(found)
        message = self._read.popleft()
        return seen(message, self._value(message))

    def _given_up(self) -> None:
        """A wait was given up, and the source has ended with it: the next one begins behind what has come."""
        self._messages = None
        if self._place == END:
            self._failure = StyxError(
                "a wait for the first event from now on was given up, so some may have passed: begin another reader"
            )

    async def aclose(self) -> None:
        """Ends the reader; the next use begins at the beginning of what it was asked for."""
        messages, self._messages, self._failure = self._messages, None, None
        self._place = self._after
        self._read.clear()
        close = getattr(messages, "aclose", None)
        if close is not None:
            await close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __await__(self) -> Generator[Any, None, list[EventSeen]]:
        return self._all().__await__()

    async def _all(self) -> list[EventSeen]:
        if self._follow:
            raise BadArguments(
                f"all events of {self._name!r} are only there with follow=False: with follow=True there may always "
                "come one more, so read them with async for"
            )
        found: list[EventSeen] = []
        async for event in self:
            if len(found) == LISTED_MAX:
                raise BadArguments(f"there are more than {LISTED_MAX} events of {self._name!r}: use async for")
            found.append(event)
        return found

    def _value(self, message: EventMessage) -> Any:
        event = self._event
        text = bytes(message.value)
        if event is None:
            return _decode_plain(text)
        try:
            return event.from_json(text)
        except Exception as error:  # noqa: BLE001 - a type's own code can run here
            raise EventUnreadable(
                f"event {self._name!r}, version {message.version}, does not fit the type of version {event.version}: "
                f"{error}. Ask for it by its name to get plain data, or go on behind {message.cursor}",
                message.cursor,
            ) from None


def reader_of(source: EventSource, app: App | None, event: Any, after: Any, follow: Any) -> EventReader:
    """The reader that `client.events` returns. `app` is None where a client knows only its name.

    Raises `BadArguments` for what is no event, one that the app does not have, and what can be no cursor.
    """
    name = event_name(event)
    if app is not None:
        known_event(app, name)
    cursor = checked_cursor(after)
    if type(follow) is not bool:
        raise BadArguments(f"follow= is True or False, got {shown(follow)}")
    return EventReader(lambda place: source.read(name, place, follow), name, event, cursor, follow)


def event_name(event: Any) -> str:
    """The name of an event given by itself or by name; raises `BadArguments`."""
    name = event.name if isinstance(event, Event) else event
    if type(name) is not str or not 0 < len(name) <= EVENT_NAME_CHARS_MAX:
        raise BadArguments(f"an event is a styx.Event or its name, got {shown(event)}")
    return name


def known_event(app: App, name: str) -> Event[Any]:
    """The app's event of this name; raises `BadArguments` that lists what there is."""
    event = app.events.get(name)
    if event is None:
        raise BadArguments(no_such_event(app.name, name, app.events))
    return event

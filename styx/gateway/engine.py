"""The interface of an engine to its gateway. The embedded engine and the gateway process of a cluster implement it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from styx.host.waiters import Receiver
from styx.messages import ReplyRecord
from styx.model.app import App
from styx.model.changes import ChangeSource
from styx.model.event_seen import EventLog
from styx.model.freshness import Freshness
from styx.model.limits import Limits
from styx.model.request import Placed, RequestMaker


class Engine(Protocol):
    """An engine as the gateway uses it, on one event loop."""

    app: App
    limits: Limits
    n_slots: int

    @property
    def maker(self) -> RequestMaker:
        """The maker of requests for this engine, of its `app`. There is none before the engine is ready."""

    @property
    def unavailable_reason(self) -> str | None:
        """Why requests cannot be served now, for a person to read; None while they are served."""

    @property
    def broken_reason(self) -> str | None:
        """Why only a restart of this process helps, for a person to read; None if a restart is not needed."""

    @property
    def in_flight(self) -> int:
        """The number of requests taken and not answered yet, of all clients."""

    @property
    def events(self) -> EventLog:
        """The logs of the app's events. There are none before the engine is ready."""

    @property
    def changes(self) -> ChangeSource:
        """The changes of its epochs. There are none before the engine is ready."""

    def submit_request(self, request: Placed) -> Awaitable[ReplyRecord]:
        """Takes a request made by `maker`. The awaitable gives its reply. Cancelling it does not cancel the
        transaction.

        Raises `RequestRejected` (`unavailable`, `overloaded`), at once or when awaited, if the request was not taken.
        Raises `OutcomeUnknown` when awaited if the request was taken and no reply will come.
        """

    def send_request(self, request: Placed, seconds: float, receiver: Receiver) -> None:
        """The same for a `receiver` of the `ReplyRecord`, which gets `TimeoutError` after `seconds`.

        Raises `RequestRejected`, or gives it to the receiver.
        """

    def read(self, request: Placed, freshness: Freshness) -> Awaitable[ReplyRecord]:
        """Reads outside the log: the request made by `maker` is for a read-only function. The awaitable gives its
        reply, whose `epoch` is the one at whose end it has read. Cancelling it ends the read.

        Raises `RequestRejected`, at once or when awaited, if nothing was read.
        """

    def metrics(self) -> str:
        """The engine's metrics in Prometheus' text format, ending with a newline."""

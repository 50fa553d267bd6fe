"""The interface between the gateway and an engine: an embedded engine or a cluster's request log.

The gateway must not depend on which of them it serves.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from styx.messages import ReplyRecord
from styx.model.app import App
from styx.model.limits import Limits
from styx.model.request import Placed, RequestMaker


class Engine(Protocol):
    """What the gateway needs of an engine; all of it is used on one event loop."""

    app: App
    limits: Limits
    n_slots: int

    @property
    def maker(self) -> RequestMaker:
        """Makes the requests that it takes, of `app`; there is none before it is ready."""

    @property
    def ready(self) -> bool:
        """Whether it has recovered and serves."""

    @property
    def unavailable_reason(self) -> str | None:
        """Why requests cannot be served now, for a person to read; None if they can."""

    @property
    def broken_reason(self) -> str | None:
        """Why nothing but a new start of this process helps, for a person to read; None if it is not so."""

    @property
    def in_flight(self) -> int:
        """Requests it has taken and not answered yet, those of other clients included."""

    def submit_request(self, request: Placed) -> Awaitable[ReplyRecord]:
        """Takes a request of `maker`; the awaitable gives its reply. Cancelling it does not cancel the transaction.

        Raises `RequestRejected` (`unavailable`, `overloaded`), at once or when awaited, if it was not taken; and when
        awaited `OutcomeUnknown` if it was, and will have no reply.
        """

    def metrics(self) -> str:
        """The engine's metrics in Prometheus' text format, ending with a newline."""

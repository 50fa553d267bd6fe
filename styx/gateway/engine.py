"""The interface of an engine to its gateway, which an embedded engine has, and a cluster's request log."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from styx.messages import ReplyRecord
from styx.model.app import App
from styx.model.limits import Limits
from styx.model.request import Placed, RequestMaker


class Engine(Protocol):
    """An engine as the gateway uses it, on one event loop."""

    app: App
    limits: Limits
    n_slots: int

    @property
    def maker(self) -> RequestMaker:
        """Makes the requests that it takes, of `app`; there is none before it is ready."""

    @property
    def unavailable_reason(self) -> str | None:
        """Why requests cannot be served now, for a person to read; None while they are served."""

    @property
    def broken_reason(self) -> str | None:
        """Why only a new start of this process helps, for a person to read; None where it would not."""

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

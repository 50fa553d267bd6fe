"""The direct way of a request: an answer without a task, ASGI's messages or a scope, for the common request.

A connection asks the application about each request whose headers are complete. If the application takes it and its
body has come in the same read, the application gets it whole, and answers it whole: at once, or later from any callback
of the event loop. All other requests go the way of ASGI. Whoever offers a direct way decides there by the same
functions as behind ASGI.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from styx.http.direct_request import DirectRequest


class Direct(Protocol):
    """An application's direct way."""

    def takes(self, request: DirectRequest) -> bool:
        """Whether the request goes this way: its line and its headers decide. Changes nothing but `request`."""

    def serve(self, request: DirectRequest) -> None:
        """Serves a request that it takes and that is whole. Calls its `answer` once, now or later."""


@runtime_checkable
class AroundDirect(Protocol):
    """An application around another one that may also stand around its direct way."""

    def around(self, direct: Direct) -> Direct:
        """The direct way through it."""

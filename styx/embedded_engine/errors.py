"""What a client of an embedded engine gets when there is no reply: whether the request may have run is in the type.

Both are `RequestRejected` with the code `unavailable` and a `ConnectionError`. Declarations only.
"""

from __future__ import annotations

from styx.errors import RequestRejected


class EngineUnavailable(RequestRejected, ConnectionError):
    """The engine does not serve, or stopped before it took the request: nothing was run."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


class OutcomeUnknown(EngineUnavailable):
    """The engine stopped before it answered: the request may have committed, or may still when it starts again."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}; the request may have committed, or may commit at the next start: repeat it only with the same "
            "idempotency key"
        )

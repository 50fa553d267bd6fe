"""What a requester raises when there is no reply; its type says whether the request may have run. Declarations only."""

from __future__ import annotations

from styx.errors import RequestRejected


class KafkaUnreachable(RequestRejected, ConnectionError):
    """Kafka is away, or the requester is not open: nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__("unavailable", message)


class OutcomeUnknown(ConnectionError):
    """The requester was closed before the reply came; the request may have committed, or still may."""

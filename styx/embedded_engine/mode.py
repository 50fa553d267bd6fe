"""Where an embedded engine is in its life, in sentences for people."""

from __future__ import annotations

from enum import Enum


class Mode(Enum):
    """Where the engine is in its life; it never goes back."""

    CREATED = "nothing is open"
    STARTING = "it recovers"
    SERVING = "requests are taken"
    CLOSING = "requests in flight are finished, and a last snapshot is taken"
    ENDED = "it was closed, crashed, or failed"

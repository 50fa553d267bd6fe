"""When requests leave for one broker again: at once, unless replies take their time anyway. Pure; never waits.

What an exchange costs the client, the broker and the workers hardly depends on how many requests it carries. Under load
replies take long, since requests queue; then they may as well gather for a small part of that time, in a client that
pauses between two exchanges. That makes all of them cheaper just when it counts, and costs a lone request nothing.
"""

from __future__ import annotations

from typing import Final

PAUSE_SHARE: Final = 1 / 4
"""Of the time that the fastest of the last replies took: so long are two exchanges apart."""
PAUSE_SECONDS_MAX: Final = 0.05
EXCHANGE_BYTES_PAUSED: Final = 256 * 1024
"""An exchange of more bytes is followed by the next one at once: it is large enough already."""


class Pacing:
    """Times are the event loop's, in seconds; `pause_s` is how far apart two exchanges are now."""

    def __init__(self) -> None:
        self.pause_s = 0.0
        self._next_s: dict[int | None, float] = {}

    def replied_after(self, seconds: float) -> None:
        """The fastest of the last replies came so long after its request."""
        self.pause_s = min(seconds * PAUSE_SHARE, PAUSE_SECONDS_MAX)

    def exchanged(self, node: int | None, now_s: float, n_bytes: int) -> None:
        """An exchange of `n_bytes` with a broker begins."""
        self._next_s[node] = now_s if n_bytes > EXCHANGE_BYTES_PAUSED else now_s + self.pause_s

    def wait_s(self, node: int | None, now_s: float) -> float:
        """How long the next exchange with this broker has to wait; not above 0 if it need not."""
        return self._next_s.get(node, now_s) - now_s

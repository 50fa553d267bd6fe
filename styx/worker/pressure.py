"""How much a worker may bring into its next epoch: less after large replies, nothing new while the log is behind.

Without it an epoch of a thousand replies of a megabyte each would follow the other, faster than any log takes them.
What was formed is in the epoch's record, so a replay does not ask. Never decides an outcome.
"""

from __future__ import annotations

from typing import Final

REPLY_BYTES: Final = 32 * 1024 * 1024
"""What the results of one epoch should weigh at most; an epoch that was over it makes the next one smaller."""
LOG_BYTES_MAX: Final = 64 * 1024 * 1024
"""While more than this waits to be in the log, no epoch takes new requests."""


class Pressure:
    """`congested` is the shell's to set, before each step."""

    __slots__ = ("_room", "congested")

    def __init__(self) -> None:
        self.congested = False
        self._room: int | None = None

    def room(self, transactions_max: int) -> int:
        """Transactions that the next epoch may have."""
        return transactions_max if self._room is None else min(self._room, transactions_max)

    def epoch_ended(self, answered: int, reply_bytes: int) -> None:
        """So many were answered by this worker in an epoch, with results of so many bytes."""
        if reply_bytes > REPLY_BYTES:
            self._room = max(1, answered * REPLY_BYTES // reply_bytes)
        elif self._room is not None and answered:
            self._room = 2 * self._room if self._room < 1 << 20 else None

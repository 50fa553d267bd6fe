"""One slot's requests on their way into Kafka: those that wait, and the batch that is under way. No I/O.

One batch is under way at once. It stays the same bytes, with the same sequence numbers, until its outcome is known, so
that the broker recognises a repetition; only then is the next one built. Never sends a request in two batches, unless
it has an idempotency key and its first batch failed.
"""

from __future__ import annotations

import time
from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from styx.client.kafka.waiters import Waiter
from styx.kafka.transaction import ProducerIdentity

BATCH_BYTES_MAX: Final = 512 * 1024
"""One batch, unless a single request is larger: half of what brokers take by default."""

_FORMAT: Final = 2
_NOT_COMPRESSED: Final = 0
_NOT_TRANSACTIONAL: Final = 0
_SEQUENCES: Final = 2**31
_NO_HEADERS: Final[list[tuple[str, bytes | None]]] = []


class SlotLane:
    """`batch` is None while none is under way; `since_s` is when it was built. `engaged` is its owner's own mark."""

    __slots__ = ("_identity", "_sent", "_sequence", "batch", "engaged", "since_s", "slot", "waiting")

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.waiting: list[Waiter] = []
        self.batch: bytearray | None = None
        self.since_s = 0.0
        self.engaged = False
        self._sent: list[Waiter] = []
        self._identity: ProducerIdentity | None = None
        self._sequence = 0

    def build(self, identity: ProducerIdentity, now_s: float) -> None:
        """Makes `batch` of what waits, up to `BATCH_BYTES_MAX`; it stays None if that is nothing.

        A request that nobody waits for any more is dropped: nobody would learn what came of it.
        """
        if identity is not self._identity:
            self._identity, self._sequence = identity, 0
        builder = DefaultRecordBatchBuilder(
            _FORMAT, _NOT_COMPRESSED, _NOT_TRANSACTIONAL, *identity, self._sequence, BATCH_BYTES_MAX
        )
        waiting, sent, append = self.waiting, self._sent, builder.append
        count, now_ms = 0, int(time.time() * 1000)
        self.waiting = []
        for index, waiter in enumerate(waiting):
            if waiter.receiver.done():
                continue
            if append(count, now_ms, None, waiter.payload, _NO_HEADERS) is None:
                self.waiting = waiting[index:]
                break
            count += 1
            sent.append(waiter)
        if count:
            self._sequence = (self._sequence + count) % _SEQUENCES
            self.batch = builder.build()
            self.since_s = now_s

    def acknowledged(self) -> None:
        """Kafka has the batch."""
        self.batch = None
        self._sent = []

    def lost(self) -> None:
        """Nobody knows what came of the batch: what may be repeated waits again, before all others."""
        self.waiting[:0] = [waiter for waiter in self._sent if waiter.repeatable]
        self.acknowledged()

"""The appending of replies to the log, each to its requester's partition, and the knowledge of which are durable.

For each partition it knows an offset that precedes all later replies; a recovery reads from there. Paper section 7.4.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from styx.cluster.worker.under_way import UnderWay
from styx.kafka.appender import Appender
from styx.kafka.appends import NewRecord, size_of
from styx.kafka.topics import TID_HEADER
from styx.messages import ReplyRecord, encode_reply

QUEUED_BYTES_MAX: Final = 64 * 1024 * 1024
"""While more bytes of replies than this wait in the appender, further ones are held back in memory."""
APPEND_BYTES: Final = 4 * 1024 * 1024
"""Replies are appended in pieces of about this size."""


class _Held(NamedTuple):
    partition: int
    records: list[NewRecord]
    size: int
    durable: asyncio.Future[None]


class ReplyLog:
    """The replies of one generation. `ends` are the ends of the partitions, read after the generation's fence.

    `lost` is called for a reply that could not be appended although the log can be reached.
    """

    def __init__(self, appender: Appender, topic: str, partitions: int, lost: Callable[[BaseException], None]) -> None:
        self.ends = [0] * partitions
        self._appender = appender
        self._topic = topic
        self._lost = lost
        self._held: deque[_Held] = deque()
        self._under_way = UnderWay()
        self._queued_bytes = 0
        self._held_bytes = 0

    @property
    def waiting_bytes(self) -> int:
        """The bytes of replies that are not durable yet."""
        return self._queued_bytes + self._held_bytes

    def emit(self, replies: list[ReplyRecord]) -> None:
        """Appends replies, in order within each partition."""
        partitions = len(self.ends)
        by_partition: dict[int, list[NewRecord]] = {}
        for reply in replies:
            record: NewRecord = (
                reply.request_id.encode(),
                encode_reply(reply),
                [(TID_HEADER, reply.sequence.to_bytes(8, "big"))],
            )
            by_partition.setdefault(reply.reply_to % partitions, []).append(record)
        for partition, records in by_partition.items():
            piece: list[NewRecord] = []
            size = 0
            for record in records:
                piece.append(record)
                size += size_of(record)
                if size >= APPEND_BYTES:
                    self._hold(partition, piece, size)
                    piece, size = [], 0
            if piece:
                self._hold(partition, piece, size)
        self._append_held()

    def _hold(self, partition: int, records: list[NewRecord], size: int) -> None:
        self._held.append(_Held(partition, records, size, self._under_way.begin()))
        self._held_bytes += size

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls `then` once all replies emitted so far are durable. Never calls it if one cannot be made durable."""
        self._under_way.when_durable(then)

    def end(self) -> None:
        """Ends the generation. Callbacks for replies that are not durable yet are dropped, with all that they
        refer to.
        """
        self._held.clear()
        self._held_bytes = 0
        self._under_way.end()

    def _append_held(self) -> None:
        held = self._held
        # Only the bytes of replies count. Other bytes in the appender do not call this method when they have left.
        while held and self._queued_bytes <= QUEUED_BYTES_MAX:
            partition, records, size, durable = held.popleft()
            self._held_bytes -= size
            self._queued_bytes += size

            def appended(
                future: asyncio.Future[int], partition: int = partition, size: int = size, durable: object = durable
            ) -> None:
                assert isinstance(durable, asyncio.Future)
                self._queued_bytes -= size
                self._appended(partition, future, durable)

            self._appender.append(self._topic, partition, records).add_done_callback(appended)

    def _appended(self, partition: int, future: asyncio.Future[int], durable: asyncio.Future[None]) -> None:
        if future.cancelled() or durable.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._lost(error)
            return
        self.ends[partition] = max(self.ends[partition], future.result())
        durable.set_result(None)
        self._append_held()

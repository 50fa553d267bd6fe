"""Replies on their way into the log, each to the partition its requester listens on; and what of them is durable.

Knows for each partition an offset before all replies still to come, which is where a recovery has to look. Decides
nothing about replies. Paper section 7.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from styx.log.kafka.appender import Appender
from styx.log.kafka.batch import NewRecord
from styx.messages import ReplyRecord, encode_reply

TID_HEADER = "tid"
"""A reply record's header: the sequence TID that tells it from all others, 8 bytes, big-endian."""


class ReplyLog:
    """One generation's. `ends` are the ends of the partitions, read after the generation's fence."""

    def __init__(self, appender: Appender, topic: str, ends: list[int]) -> None:
        self.ends = ends
        self._appender = appender
        self._topic = topic
        self._under_way: set[asyncio.Future[int]] = set()

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
            appended = self._appender.append(self._topic, partition, records)
            self._under_way.add(appended)
            appended.add_done_callback(partial(self._appended, partition))

    def when_durable(self, then: Callable[[], None]) -> None:
        """Calls `then` once every reply emitted so far is durable; never, if one is not."""
        waiting = set(self._under_way)
        if not waiting:
            then()
            return

        def one_less(future: asyncio.Future[int]) -> None:
            waiting.discard(future)
            if not waiting and not future.cancelled() and future.exception() is None:
                then()

        for future in list(waiting):
            future.add_done_callback(one_less)

    def _appended(self, partition: int, future: asyncio.Future[int]) -> None:
        self._under_way.discard(future)
        if not future.cancelled() and future.exception() is None:
            self.ends[partition] = max(self.ends[partition], future.result())

"""The reader of replies: one partition of the replies topic, from its end on, for ever.

It reads uncommitted records: workers keep a transaction open only to fence each other, and a reply in the topic stands.
If the broker has lost its offset, reading goes on at the end. A damaged batch is fetched once more, and then passed
over: requests with replies in it wait until their timeouts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from styx.errors import EngineFailed, NotSent
from styx.kafka.offsets import END, list_offsets
from styx.kafka.session import RETRY_SECONDS, KafkaSession
from styx.kafka.tail import FETCH_BYTES_MAX, Tail
from styx.kafka.wire import Chunk

REPLIES_BATCH_MAX: Final = 1_000
"""Replies delivered in one turn of the event loop."""
STUCK_SECONDS: Final = 120.0
"""A fetch that takes longer will not end. The longest one asks each known broker in turn."""

_log = logging.getLogger("styx.client.kafka")


class ReplyReader(Tail):
    """Gives the records of one partition to `deliver`, many at once; each has a `key` and a `value`, bytes or None.

    `passed_over` is called for each damaged batch that is passed over, `failed` with an unforeseen error, which ends
    reading. `session` is open; fetches take a connection of their own there.
    """

    def __init__(
        self,
        session: KafkaSession,
        topic: str,
        partition: int,
        *,
        deliver: Callable[[list[Any]], None],
        passed_over: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        # A broker that refuses now may allow it later: no reason to start a client anew.
        passing = (OSError, EngineFailed)
        super().__init__(session, topic, "replies", partition_bytes_max=FETCH_BYTES_MAX, passing=passing)
        self._partition = partition
        self._deliver = deliver
        self._passed_over = passed_over
        self._on_failure = failed
        self._damaged_at = -1

    async def start(self) -> None:
        """Returns at the end of the partition: every later record is delivered. Raises `NotSent`."""
        place = self._topic, self._partition
        try:
            end = (await list_offsets(self._session, [place], END))[place]
        except (OSError, EngineFailed) as error:
            raise NotSent(f"the replies topic cannot be read: {error}") from None
        self.assign({self._partition: end})

    @property
    def stuck_reason(self) -> str | None:
        """Why no more replies will be read; None while fetches go on, even in vain."""
        seconds = self._loop.time() - self._turn_s
        if not self._polls or seconds <= STUCK_SECONDS:
            return None
        return f"reading replies has made no progress for {seconds:.0f} s"

    async def _take(self, chunks: dict[int, Chunk]) -> None:
        """Delivers the records in pieces, with a turn of the event loop between two of them."""
        chunk, position = chunks[self._partition], self._positions[self._partition]
        records = chunk.records(position)
        damage: Exception | None = None
        while damage is None:
            piece: list[Any] = []
            try:
                piece.extend(islice(records, REPLIES_BATCH_MAX))
            except Exception as error:  # noqa: BLE001 - bytes that nobody can read must not stop the others
                damage = error
            if piece:
                position = piece[-1].offset + 1
                self._deliver(piece)
            if damage is None and len(piece) < REPLIES_BATCH_MAX:
                self._move(self._partition, chunk.next_offset(position))
                return
            self._move(self._partition, position)
            await asyncio.sleep(0)
        await self._pass_over(chunk, position, damage)

    async def _pass_over(self, chunk: Chunk, position: int, damage: Exception) -> None:
        """Passes over the batch at `position` at its second failure: the first may have happened on the way."""
        if self._damaged_at != position:
            self._damaged_at = position
            await asyncio.sleep(RETRY_SECONDS)
            return
        _log.error("replies from offset %d on cannot be read and are passed over: %s", position, damage)
        self._damaged_at = behind = chunk.behind_damage(position)
        self._move(self._partition, behind)
        self._passed_over()

    def _outside(self, partition: int, first: int, end: int) -> None:
        _log.warning("replies at offset %d are lost; reading goes on at %d", self._positions[partition], end)
        self._move(partition, end)

    def _failed(self, error: BaseException) -> None:
        self._on_failure(error)

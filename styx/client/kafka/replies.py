"""One partition of the replies, read from its end on, forever. It knows no request, and decodes only batches.

It reads uncommitted records: workers keep a transaction open only to fence each other, and a reply in the topic stands.
Kafka away means waiting; reading goes on at its offset. If the broker has lost that offset, it goes on at the end. A
batch that is damaged is asked for once more, and then passed over: whose replies were in it wait until their timeout.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any, Final

from styx.client.kafka.damage import offset_behind
from styx.errors import EngineFailed, NotSent
from styx.kafka.errors import OFFSET_OUT_OF_RANGE
from styx.kafka.fetch import Chunk, fetch
from styx.kafka.offsets import END, FIRST, check, list_offsets
from styx.kafka.session import RETRY_SECONDS, KafkaSession

REPLIES_BATCH_MAX: Final = 1_000
"""Replies handled between two turns of the event loop."""
FETCH_BYTES_MAX: Final = 1024 * 1024
"""One fetch; a single larger record is still delivered."""
WAIT_MS: Final = 500
"""How long a broker holds a fetch while there is nothing new; it answers at once when there is."""
AWAY_SECONDS_MAX: Final = 1.0
"""Between two attempts to reach a broker that is away, at most."""
STUCK_SECONDS: Final = 120.0
"""A turn of reading that takes longer will not end. The longest one asks each known broker, one after the other."""

_log = logging.getLogger("styx.client.kafka")

Deliver = Callable[[list[Any]], None]


class ReplyReader:
    """Gives the records of one partition to `deliver`, many at once; each has a `key` and a `value`, bytes or None.

    `passed_over` is called for each damaged batch that is, `on_end` when its task ends, which without `close` is a
    fault. `session` is open; fetches have a connection of their own there.
    """

    def __init__(
        self,
        session: KafkaSession,
        topic: str,
        partition: int,
        *,
        deliver: Deliver,
        passed_over: Callable[[], None],
        on_end: Callable[[asyncio.Task[None]], None],
    ) -> None:
        self._session = session
        self._topic = topic
        self._partition = partition
        self._deliver = deliver
        self._passed_over = passed_over
        self._on_end = on_end
        self._task: asyncio.Task[None] | None = None
        self._position = 0
        self._damaged_at = -1
        self._loop = asyncio.get_running_loop()
        self._turn_s = self._loop.time()
        self._away_since_s: float | None = None

    async def start(self) -> None:
        """Returns once it stands at the end: every later record is delivered. Raises `NotSent`."""
        try:
            self._position = await self._offset(END)
        except (OSError, EngineFailed) as error:
            raise NotSent(f"the replies topic cannot be read: {error}") from None
        self._task = asyncio.create_task(self._read())
        self._task.add_done_callback(self._on_end)

    @property
    def stuck_reason(self) -> str | None:
        """Why replies will not be read any more; None while they are, or while Kafka is asked for them in vain."""
        seconds = self._loop.time() - self._turn_s
        if self._task is None or seconds <= STUCK_SECONDS:
            return None
        return f"reading replies has made no progress for {seconds:.0f} s"

    async def close(self) -> None:
        """Ends reading."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _offset(self, which: int) -> int:
        place = self._topic, self._partition
        return (await list_offsets(self._session, [place], which))[place]

    async def _read(self) -> None:
        while True:
            self._turn_s = self._loop.time()
            try:
                chunk = await self._fetch()
            except (OSError, EngineFailed) as error:
                await self._wait(error)
                continue
            if self._away_since_s is not None:
                self._answers()
            if chunk.data:
                await self._take(chunk)

    async def _fetch(self) -> Chunk:
        """What came at its position, nothing if there is nothing new. Raises `ConnectionError` and `EngineFailed`."""
        chunks = await fetch(
            self._sender(),
            self._topic,
            {self._partition: self._position},
            wait_ms=WAIT_MS,
            bytes_max=FETCH_BYTES_MAX,
            partition_bytes_max=FETCH_BYTES_MAX,
        )
        chunk = chunks.get(self._partition)
        if chunk is None:
            raise ConnectionError(f"{self._session}: the answer says nothing of {self._topic}")
        if chunk.code == OFFSET_OUT_OF_RANGE:
            await self._find_position()
        check(self._session, self._topic, self._partition, chunk.code)
        return chunk

    def _sender(self) -> Callable[[Any], Awaitable[Any]]:
        session, leader = self._session, self._session.leader(self._topic, self._partition)
        if leader is None:
            raise ConnectionError(f"{session}: {self._topic}, partition {self._partition} has no leader now")
        # Not on the connection that requests go out on: a broker holds a fetch, and what is behind it.
        return lambda request: session.send_coordinator(leader, request)

    async def _find_position(self) -> None:
        """Goes to the end, unless the offset is there after all: a new leader may not have known it yet."""
        first, end = await self._offset(FIRST), await self._offset(END)
        if not first <= self._position <= end:
            _log.warning("replies at offset %d are lost; reading goes on at %d", self._position, end)
            self._position = end

    async def _take(self, chunk: Chunk) -> None:
        """Delivers what is in it, in pieces, between which others have their turn."""
        records = chunk.records(self._position)
        while True:
            piece: list[Any] = []
            try:
                piece.extend(islice(records, REPLIES_BATCH_MAX))
                damage = None
            except Exception as error:  # noqa: BLE001 - bytes that nobody can read must not stop the others
                damage = error
            if piece:
                self._position = piece[-1].offset + 1
                self._deliver(piece)
            if damage is not None:
                await self._pass_over(chunk, damage)
                return
            if len(piece) < REPLIES_BATCH_MAX:
                self._position = chunk.next_offset(self._position)
                return
            await asyncio.sleep(0)

    async def _pass_over(self, chunk: Chunk, damage: Exception) -> None:
        """The first time, the batch at its position is fetched again: what was wrong may have been on the way."""
        if self._damaged_at != self._position:
            self._damaged_at = self._position
            await asyncio.sleep(RETRY_SECONDS)
            return
        _log.error("replies from offset %d on cannot be read and are passed over: %s", self._position, damage)
        self._damaged_at = self._position = offset_behind(chunk, self._position)
        self._passed_over()

    async def _wait(self, error: Exception) -> None:
        now_s = self._loop.time()
        if self._away_since_s is None:
            _log.warning("replies cannot be read (%s); trying again", error)
            self._away_since_s = now_s
        await asyncio.sleep(min(AWAY_SECONDS_MAX, RETRY_SECONDS + now_s - self._away_since_s))
        await self._session.refresh()

    def _answers(self) -> None:
        _log.warning("replies are read again")
        self._away_since_s = None

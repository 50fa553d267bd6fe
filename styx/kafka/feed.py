"""Feeds a worker with the requests of its slots, as they come into Kafka (§5.1).

A slot is a partition of the requests topic. Nothing of an assignment is delivered after the next one, nor of a slot
while it is paused. A broker that is away is waited for, for as long as it takes. Never stores an offset, and never
skips a record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from styx.errors import EngineFailed
from styx.kafka.address import KafkaAddress
from styx.kafka.errors import OFFSET_OUT_OF_RANGE
from styx.kafka.fetch import Chunk, Damaged, fetch
from styx.kafka.offsets import END, FIRST, check, list_offsets
from styx.kafka.session import RETRY_SECONDS, KafkaSession
from styx.log.base import LogCorrupt, LogTruncated, Record, Stream

FETCH_BYTES_MAX: Final = 1024 * 1024
"""One answer, unless a single record is larger: so that taking it apart holds up the loop for milliseconds."""
SLOT_BYTES_MAX: Final = 256 * 1024
"""One slot's part of an answer."""
WAIT_MS: Final = 500
"""How long a broker holds a request while there is nothing new; it answers at once when there is."""
WAIT_PAUSED_MS: Final = 10
"""The same while a slot is paused: one that is resumed meanwhile is part of the next request only."""
PAUSE_SECONDS_MIN: Final = 0.001
"""A shorter pause between two requests would cost more than it saves."""
AWAY_SECONDS_MAX: Final = 1.0
"""Between two attempts to reach a broker that is away, at most."""

Deliver = Callable[[dict[int, list[Record]]], None]

_log = logging.getLogger(__name__)


class RequestFeed:
    """For one event loop, which it calls `deliver` and, at most once, `on_failure` on.

    `pause_s` says how long the taker has no use for more, after a delivery: fetching at every arrival meanwhile would
    keep both sides busy with small answers.
    """

    def __init__(
        self,
        address: KafkaAddress | str,
        topic: str,
        *,
        deliver: Deliver,
        on_failure: Callable[[BaseException], None],
        pause_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._session = KafkaSession(address)
        self._pause_s = pause_s
        self._topic = topic
        self._deliver = deliver
        self._on_failure = on_failure
        self._positions: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._paused: set[int] = set()
        self._polls: dict[int, asyncio.Task[None]] = {}
        self._wake = asyncio.Event()
        self._runner: asyncio.Task[None] | None = None
        self._second_connection = False
        self._away_since: dict[int, float] = {}

    async def start(self) -> None:
        """Connects. Raises `ConnectionError` and `ConfigurationError`."""
        try:
            await self._session.open([self._topic])
        except BaseException:
            await self._session.close()
            raise
        self._runner = asyncio.create_task(self._run())

    def assign(self, offsets: Mapping[int, int]) -> None:
        """From now on these slots, each from its offset, none paused; nothing else is delivered any more."""
        self._positions = dict(offsets)
        self._ends = {}
        self._paused.clear()
        for poll in self._polls.values():
            poll.cancel()
        # The broker holds the request that was just given up, and would answer the next one on its connection later.
        self._second_connection = not self._second_connection
        self._wake.set()

    def pause(self, slot: int) -> None:
        """Delivers nothing of the slot until it is resumed."""
        self._paused.add(slot)

    def resume(self, slot: int) -> None:
        self._paused.discard(slot)
        self._wake.set()

    def lag(self) -> dict[int, int]:
        """By slot: offsets between what was delivered and the end of the partition, as it was last heard of."""
        return {slot: max(0, self._ends.get(slot, offset) - offset) for slot, offset in self._positions.items()}

    @property
    def away(self) -> bool:
        """A broker that it reads from does not answer, and is waited for."""
        return bool(self._away_since)

    async def stop(self) -> None:
        """Delivers nothing any more, and disconnects."""
        self._positions = {}
        tasks = [*self._polls.values()] if self._runner is None else [self._runner, *self._polls.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            for leader in {self._leader(slot) for slot in self._positions if slot not in self._paused}:
                if leader not in self._polls:
                    self._polls[leader] = poll = asyncio.create_task(self._poll(leader))
                    poll.add_done_callback(partial(self._poll_ended, leader))

    def _poll_ended(self, leader: int, poll: asyncio.Task[None]) -> None:
        del self._polls[leader]
        self._wake.set()

    def _leader(self, slot: int) -> int:
        leader = self._session.leader(self._topic, slot)
        return _NOBODY if leader is None else leader

    async def _poll(self, leader: int) -> None:
        """Fetches from one broker for as long as it has anything to ask it."""
        try:
            while wanted := self._wanted(leader):
                try:
                    await self._fetch(leader, wanted)
                    pause_s = self._pause_s()
                    if pause_s > PAUSE_SECONDS_MIN:
                        await asyncio.sleep(pause_s)
                except ConnectionError as error:
                    await self._wait_for_broker(leader, error)
                    break
        except (EngineFailed, LogTruncated) as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody else would learn of it
            failure = EngineFailed(f"Reading requests failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._fail(failure)

    def _wanted(self, leader: int) -> dict[int, int]:
        return {
            slot: offset
            for slot, offset in self._positions.items()
            if slot not in self._paused and self._leader(slot) == leader
        }

    async def _fetch(self, leader: int, wanted: dict[int, int]) -> None:
        if leader == _NOBODY:
            raise ConnectionError(f"{self._session}: {self._topic} has partitions without a leader")
        positions = self._positions
        chunks = await fetch(
            self._sender(leader),
            self._topic,
            wanted,
            wait_ms=WAIT_PAUSED_MS if self._paused else WAIT_MS,
            bytes_max=FETCH_BYTES_MAX,
            partition_bytes_max=SLOT_BYTES_MAX,
        )
        refused, arrived = [], {}
        for slot, chunk in chunks.items():
            # Meanwhile: assigned anew, paused, or fetched from the next leader already.
            if positions is not self._positions or slot in self._paused or positions[slot] != wanted[slot]:
                continue
            if chunk.code:
                refused.append((slot, chunk.code))
            elif arrivals := self._take(slot, wanted[slot], chunk):
                arrived[slot] = arrivals
        if arrived:
            self._deliver(arrived)
        for slot, code in refused:
            if code == OFFSET_OUT_OF_RANGE:
                await self._explain(slot, wanted[slot])
            check(self._session, self._topic, slot, code)
        self._answers(leader)

    def _sender(self, leader: int) -> Callable[[Any], Awaitable[Any]]:
        send = self._session.send_coordinator if self._second_connection else self._session.send
        return lambda request: send(leader, request)

    def _take(self, slot: int, position: int, chunk: Chunk) -> list[Record]:
        try:
            arrivals = [
                Record(record.offset, record.timestamp * 1000, record.value or b"")
                for record in chunk.records(position)
            ]
        except Damaged as damage:
            raise LogCorrupt(
                str(damage), file=self._topic, stream=Stream.REQUESTS, partition=slot, offset=position
            ) from None
        if chunk.data:
            # At the end of the dictionary: slots that had no room in this answer come first in the next one.
            del self._positions[slot]
            self._positions[slot] = chunk.next_offset(position)
        self._ends[slot] = chunk.end
        return arrivals

    async def _explain(self, slot: int, offset: int) -> None:
        """Raises unless the offset is within the partition after all: a new leader may not have known it yet."""
        key = self._topic, slot
        first = (await list_offsets(self._session, [key], FIRST))[key]
        end = (await list_offsets(self._session, [key], END))[key]
        if offset < first:
            raise LogTruncated(f"{self._topic}, partition {slot} begins at offset {first}, not {offset}.")
        if offset > end:
            problem = f"it ends at offset {end}, but records before offset {offset} are known"
            raise LogCorrupt(problem, file=self._topic, stream=Stream.REQUESTS, partition=slot, offset=offset)
        raise ConnectionError(f"{self._session}: the leader of {self._topic}, partition {slot} is not ready")

    async def _wait_for_broker(self, leader: int, error: ConnectionError) -> None:
        now = asyncio.get_running_loop().time()
        if not self._away_since:
            _log.warning("%s; requests are read again when it answers", error)
        since = self._away_since.setdefault(leader, now)
        await asyncio.sleep(min(AWAY_SECONDS_MAX, RETRY_SECONDS + now - since))
        await self._session.refresh()

    def _answers(self, leader: int) -> None:
        """Its partitions had no leader, perhaps, before they had this one."""
        since = [self._away_since.pop(each) for each in (leader, _NOBODY) if each in self._away_since]
        if since and not self._away_since:
            seconds = asyncio.get_running_loop().time() - min(since)
            _log.warning("%s answers again after %.1f s", self._session, seconds)

    def _fail(self, error: BaseException) -> None:
        if self._positions:
            self._positions = {}
            self._on_failure(error)


_NOBODY: Final = -1
"""Stands for the leader of slots that have none now."""

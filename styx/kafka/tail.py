"""The tail of a topic: partitions read on from their offsets, for ever, with one fetch at a time to each broker.

No record of an assignment is delivered after the next assignment, and none of a partition while it is paused. The tail
waits for an unreachable broker, for as long as it takes. Offsets are stored nowhere.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from styx.kafka.errors import OFFSET_OUT_OF_RANGE
from styx.kafka.fetch import Chunk, fetch
from styx.kafka.offsets import END, FIRST, check, list_offsets
from styx.kafka.session import RETRY_SECONDS, KafkaSession

FETCH_BYTES_MAX: Final = 1024 * 1024
"""One answer, unless a single record is larger: so that taking it apart holds up the loop for milliseconds."""
WAIT_MS: Final = 500
"""How long a broker holds a request while there is nothing new; it answers at once when there is."""
WAIT_PAUSED_MS: Final = 10
"""The same while a partition is paused: one that is resumed meanwhile is part of the next request only."""
PAUSE_SECONDS_MIN: Final = 0.001
"""A shorter pause between two requests would cost more than it saves."""
AWAY_SECONDS_MAX: Final = 1.0
"""Between two attempts to reach a broker that is away, at most."""

_NOBODY: Final = -1
"""Stands for the leader of partitions that have none now."""

_log = logging.getLogger(__name__)


class Tail(ABC):
    """For one event loop; `session` is open before anything is assigned. `what` names the records in the log.

    `partition_bytes_max` is one partition's part of an answer. `pause_s` says, after a delivery, how long nothing needs
    to be fetched. What `passing` names is waited for, like a broker that is away; any other error ends reading, and
    `_failed` is told, once.
    """

    def __init__(
        self,
        session: KafkaSession,
        topic: str,
        what: str,
        *,
        partition_bytes_max: int,
        pause_s: Callable[[], float] = lambda: 0.0,
        passing: tuple[type[Exception], ...] = (ConnectionError,),
    ) -> None:
        self._session = session
        self._topic = topic
        self._what = what
        self._partition_bytes_max = partition_bytes_max
        self._pause_s = pause_s
        self._passing = passing
        self._loop = asyncio.get_running_loop()
        self._positions: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._paused: set[int] = set()
        self._polls: dict[int, asyncio.Task[None]] = {}
        self._second_connection = False
        self._away_since_s: dict[int, float] = {}
        self._turn_s = 0.0
        """When a fetch began last."""

    @abstractmethod
    async def _take(self, chunks: dict[int, Chunk]) -> None:
        """Takes what came of partitions at their positions, and moves these."""

    @abstractmethod
    def _outside(self, partition: int, first: int, end: int) -> None:
        """A partition reaches from `first` to `end`, without its position: moves that, or raises."""

    @abstractmethod
    def _failed(self, error: BaseException) -> None:
        """Nothing is read any more."""

    def assign(self, offsets: Mapping[int, int]) -> None:
        """From now on these partitions, each from its offset, none paused; nothing else is delivered any more."""
        self._positions = dict(offsets)
        self._ends = {}
        self._paused.clear()
        self._give_up()
        # The broker holds the request that was just given up, and would answer the next one on its connection later.
        # The second connection comes first, so that what is sent on the other one does not wait for a fetch.
        self._second_connection = not self._second_connection
        self._poll_all()

    def pause(self, partition: int) -> None:
        """Delivers nothing of the partition until it is resumed."""
        self._paused.add(partition)

    def resume(self, partition: int) -> None:
        self._paused.discard(partition)
        self._poll_all()

    def lag(self) -> dict[int, int]:
        """By partition: offsets between what was delivered and its end, as it was last heard of."""
        return {each: max(0, self._ends.get(each, offset) - offset) for each, offset in self._positions.items()}

    @property
    def away(self) -> bool:
        """A broker that it reads from does not answer, and is waited for."""
        return bool(self._away_since_s)

    async def stop(self) -> None:
        """Delivers nothing any more."""
        self._positions = {}
        self._give_up()
        await asyncio.gather(*self._polls.values(), return_exceptions=True)

    def _give_up(self) -> None:
        for poll in self._polls.values():
            poll.cancel()

    def _poll_all(self) -> None:
        for leader in {self._leader(each) for each in self._positions if each not in self._paused}:
            if leader not in self._polls:
                self._polls[leader] = poll = self._loop.create_task(self._poll(leader))
                poll.add_done_callback(partial(self._poll_ended, leader))

    def _poll_ended(self, leader: int, poll: asyncio.Task[None]) -> None:
        del self._polls[leader]
        error = None if poll.cancelled() else poll.exception()
        if error is None:
            self._poll_all()
        elif self._positions:
            self._positions = {}
            self._give_up()
            self._failed(error)

    def _leader(self, partition: int) -> int:
        leader = self._session.leader(self._topic, partition)
        return _NOBODY if leader is None else leader

    async def _poll(self, leader: int) -> None:
        """Fetches from one broker for as long as it has anything to ask it."""
        while wanted := self._wanted(leader):
            self._turn_s = self._loop.time()
            try:
                await self._fetch(leader, wanted)
            except self._passing as error:
                await self._wait_for_broker(leader, error)
                return
            pause_s = self._pause_s()
            if pause_s > PAUSE_SECONDS_MIN:
                await asyncio.sleep(pause_s)

    def _wanted(self, leader: int) -> dict[int, int]:
        return {
            partition: offset
            for partition, offset in self._positions.items()
            if partition not in self._paused and self._leader(partition) == leader
        }

    async def _fetch(self, leader: int, wanted: dict[int, int]) -> None:
        session = self._session
        if leader == _NOBODY:
            raise ConnectionError(f"{session}: {self._topic} has partitions without a leader")
        send = session.send_coordinator if self._second_connection else session.send
        chunks = await fetch(
            lambda request: send(leader, request),
            self._topic,
            wanted,
            wait_ms=WAIT_PAUSED_MS if self._paused else WAIT_MS,
            bytes_max=FETCH_BYTES_MAX,
            partition_bytes_max=self._partition_bytes_max,
        )
        refused, came = [], {}
        for partition, chunk in chunks.items():
            # Meanwhile: paused, or fetched from the next leader already.
            if partition in self._paused or self._positions[partition] != wanted[partition]:
                continue
            if chunk.code:
                refused.append((partition, chunk.code))
                continue
            self._ends[partition] = chunk.end
            if chunk.data:
                came[partition] = chunk
        if came:
            await self._take(came)
        for partition, code in refused:
            if code == OFFSET_OUT_OF_RANGE:
                await self._look_for(partition, wanted[partition])
            else:
                check(session, self._topic, partition, code)
        self._answers(leader)

    def _move(self, partition: int, offset: int) -> None:
        """Puts a position at the end of the dictionary: who had no room in this answer comes first in the next one."""
        del self._positions[partition]
        self._positions[partition] = offset

    async def _look_for(self, partition: int, offset: int) -> None:
        """The offset may be there after all: a new leader may not have known it yet. Raises `ConnectionError` then."""
        key = self._topic, partition
        first = (await list_offsets(self._session, [key], FIRST))[key]
        end = (await list_offsets(self._session, [key], END))[key]
        if first <= offset <= end:
            raise ConnectionError(f"{self._session}: the leader of {self._topic}, partition {partition} is not ready")
        self._outside(partition, first, end)

    async def _wait_for_broker(self, leader: int, error: Exception) -> None:
        now_s = self._loop.time()
        if not self._away_since_s:
            _log.warning("%s; %s are read again when it answers", error, self._what)
        since_s = self._away_since_s.setdefault(leader, now_s)
        await asyncio.sleep(min(AWAY_SECONDS_MAX, RETRY_SECONDS + now_s - since_s))
        await self._session.refresh()

    def _answers(self, leader: int) -> None:
        """Its partitions had no leader, perhaps, before they had this one."""
        since_s = [self._away_since_s.pop(each) for each in (leader, _NOBODY) if each in self._away_since_s]
        if since_s and not self._away_since_s:
            _log.warning("%s answers again after %.1f s", self._session, self._loop.time() - min(since_s))

"""The tail of a topic: partitions read on from their offsets, for ever, with one fetch at a time to each broker.

No record of an assignment is delivered after the next assignment, and none of a partition while it is paused. The tail
waits for an unreachable broker, for as long as it takes. Offsets are stored nowhere.

A worker reads its requests with a tail (`RequestFeed`, §5.1): a slot is a partition of the requests topic.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from styx.errors import EngineFailed
from styx.kafka.address import KafkaAddress
from styx.kafka.errors import OFFSET_OUT_OF_RANGE
from styx.kafka.fetch_session import FetchSession
from styx.kafka.offsets import END, FIRST, check, list_offsets
from styx.kafka.session import RETRY_SECONDS, KafkaSession
from styx.kafka.wire import Chunk, Damaged, chunks_of
from styx.log.base import Arrival, LogCorrupt, LogTruncated, Stream

FETCH_BYTES_MAX: Final = 1024 * 1024
"""One answer, unless a single record is larger, so that decoding it holds up the loop for milliseconds."""
SLOT_BYTES_MAX: Final = 256 * 1024
"""One slot's part of an answer for a `RequestFeed`."""
WAIT_MS: Final = 500
"""How long a broker holds a fetch without new records; it answers at once when a record comes."""
WAIT_PAUSED_MS: Final = 10
"""The same while a partition is paused, since a partition that is resumed takes part in the next fetch only."""
PAUSE_SECONDS_MIN: Final = 0.001
"""A shorter pause between two fetches would cost more than it saves."""
AWAY_SECONDS_MAX: Final = 1.0
"""Between two attempts to reach a broker that is away, at most."""

Deliver = Callable[[dict[int, list[Arrival]]], None]

_NOBODY: Final = -1
"""The leader of partitions without a leader."""

_log = logging.getLogger(__name__)


class Tail(ABC):
    """For one event loop; `session` is open before the first assignment. `what` names the records in log messages.

    `partition_bytes_max` is one partition's part of an answer. `pause_s` gives, after a delivery, the seconds without
    need for a fetch. After an error of `passing` the tail waits, as for a broker that is away; any other error ends
    reading, and `_failed` is told, once.
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
        self._fetching: dict[int, FetchSession] = {}
        self._second_connection = False
        self._away_since_s: dict[int, float] = {}
        self._turn_s = 0.0
        """The start of the last fetch."""

    @abstractmethod
    async def _take(self, chunks: dict[int, Chunk]) -> None:
        """Takes chunks of partitions at their positions, and moves the positions."""

    @abstractmethod
    def _outside(self, partition: int, first: int, end: int) -> None:
        """Handles a position outside of its partition, which reaches from `first` to `end`: moves it, or raises."""

    @abstractmethod
    def _failed(self, error: BaseException) -> None:
        """Learns of the error that ended reading."""

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Reads these partitions from now on, each from its offset, none paused, and no others."""
        self._positions = dict(offsets)
        self._ends = {}
        self._paused.clear()
        self._give_up()
        # The broker still holds the fetch that was just given up, and answers requests of one connection in order.
        # The second connection comes first, since other requests are sent on the first one.
        self._second_connection = not self._second_connection
        self._poll_all()

    def pause(self, partition: int) -> None:
        """Delivers nothing of the partition until it is resumed."""
        self._paused.add(partition)

    def resume(self, partition: int) -> None:
        self._paused.discard(partition)
        self._poll_all()

    def lag(self) -> dict[int, int]:
        """By partition: the offsets from the last delivery to the partition's end, as last known."""
        return {each: max(0, self._ends.get(each, offset) - offset) for each, offset in self._positions.items()}

    @property
    def away(self) -> bool:
        """Whether a broker that it reads from does not answer now."""
        return bool(self._away_since_s)

    async def stop(self) -> None:
        """Stops reading; no delivery follows."""
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
        """Fetches from one broker until it leads no partition to read."""
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
        topic, paused, leader_of = self._topic, self._paused, self._session.leader
        led = None if leader == _NOBODY else leader
        return {
            partition: offset
            for partition, offset in self._positions.items()
            if partition not in paused and leader_of(topic, partition) == led
        }

    async def _fetch(self, leader: int, wanted: dict[int, int]) -> None:
        session = self._session
        if leader == _NOBODY:
            raise ConnectionError(f"{session}: {self._topic} has partitions without a leader")
        fetching = self._fetching.get(leader)
        if fetching is None:
            fetching = self._fetching[leader] = FetchSession()
        request = fetching.fetch(
            self._topic,
            wanted,
            wait_ms=WAIT_PAUSED_MS if self._paused else WAIT_MS,
            bytes_max=FETCH_BYTES_MAX,
            partition_bytes_max=self._partition_bytes_max,
        )
        try:
            answer = await session.send(leader, request, apart=self._second_connection)
        except BaseException:
            fetching.drop()
            raise
        if not fetching.took(answer):
            return
        refused, came = [], {}
        for partition, chunk in chunks_of(answer).items():
            # Meanwhile paused, or fetched from the next leader.
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
        """Puts a position at the end: partitions that had no room in this answer come first in the next one."""
        del self._positions[partition]
        self._positions[partition] = offset

    async def _look_for(self, partition: int, offset: int) -> None:
        """Looks again, since a new leader may not know the offset yet. Raises `ConnectionError` in that case."""
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
        # The leader's partitions may have had no leader before.
        since_s = [self._away_since_s.pop(each) for each in (leader, _NOBODY) if each in self._away_since_s]
        if since_s and not self._away_since_s:
            _log.warning("%s answers again after %.1f s", self._session, self._loop.time() - min(since_s))


class RequestFeed(Tail):
    """A worker's requests, without a gap, for one event loop: it calls `deliver` and, at most once, `on_failure` there.

    `pause_s` gives, after a delivery, the seconds for which the worker needs no more requests: a fetch for each arrival
    would keep both sides busy with small answers.
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
        session = KafkaSession(address)
        super().__init__(session, topic, "requests", partition_bytes_max=SLOT_BYTES_MAX, pause_s=pause_s)
        self._deliver = deliver
        self._on_failure = on_failure

    async def start(self) -> None:
        """Connects. Raises `ConnectionError` and `ConfigurationError`."""
        try:
            await self._session.open([self._topic])
        except BaseException:
            await self._session.close()
            raise

    async def stop(self) -> None:
        """Stops reading, and disconnects."""
        await super().stop()
        await self._session.close()

    async def _take(self, chunks: dict[int, Chunk]) -> None:
        arrived = {slot: arrivals for slot, chunk in chunks.items() if (arrivals := self._arrivals(slot, chunk))}
        if arrived:
            self._deliver(arrived)

    def _arrivals(self, slot: int, chunk: Chunk) -> list[Arrival]:
        position = self._positions[slot]
        try:
            arrivals = [
                (record.offset, record.timestamp * 1000, record.value or b"") for record in chunk.records(position)
            ]
        except Damaged as damage:
            raise self._corrupt(slot, str(damage)) from None
        self._move(slot, chunk.next_offset(position))
        return arrivals

    def _outside(self, slot: int, first: int, end: int) -> None:
        offset = self._positions[slot]
        if offset < first:
            raise LogTruncated(f"{self._topic}, partition {slot} begins at offset {first}, not {offset}.")
        raise self._corrupt(slot, f"it ends at offset {end}, but records before offset {offset} are known")

    def _corrupt(self, slot: int, problem: str) -> LogCorrupt:
        offset = self._positions[slot]
        return LogCorrupt(problem, file=self._topic, stream=Stream.REQUESTS, partition=slot, offset=offset)

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, (EngineFailed, LogTruncated)):
            failure = EngineFailed(f"Reading requests failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            error = failure
        self._on_failure(error)

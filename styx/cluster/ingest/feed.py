"""The feed of one ingest: reads its topic, and sends what stands there, partition by partition, in order and in bounds.

How far a partition is taken stands in the state of its entity and nowhere else; a feed asks for it when it begins. So
any number of feeds of one topic, and feeds that are killed at any moment, do no harm. One batch of a partition is on
its way at a time, and nothing more of it is read meanwhile.

What was read counts only if the topic is afterwards still the one that it was: ids of topics never come back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from styx.cluster.ingest.batches import cut, record_bytes_max
from styx.cluster.ingest.sender import Sender
from styx.cluster.ingest.source import OutOfRange, Source, SourceRecord
from styx.errors import EngineFailed
from styx.gateway.engine import Engine
from styx.model.ingest import Ingest
from styx.model.ingest_position import BUSY, TAKEN, Batch, Position, outcome_of, position_of

AGAIN_SECONDS: Final = 1.0
"""The pause before brokers are asked again that could not be reached, or that lack the topic."""
LOOK_SECONDS: Final = 2.0
"""How often an idle feed looks for new partitions, and at how far the topic reaches."""
BUSY_SECONDS: Final = 0.05
"""The pause before a batch is sent again for which there was no room."""
SHORT_SECONDS: Final = 30.0
"""For how long a partition has to end before what was taken until that is believed: a new leader may be behind."""

_log = logging.getLogger("styx.ingest")


@dataclass
class Lane:
    """One partition: `next` is the offset to be read, `sending` the batches on their way. `end` is the offset behind
    its last record, as last known; `position` what its entity said last.
    """

    next: int
    position: Position
    end: int = 0
    sending: asyncio.Task[int] | None = None
    short_since_s: float | None = None
    set_aside: int = 0
    left_out: int = 0


@dataclass
class FeedCounts:
    """Totals since the process began: records and batches that were taken, bytes of their values, times that a batch
    had to wait for room, and times that the source was lost.
    """

    records: int = 0
    batches: int = 0
    bytes: int = 0
    waits: int = 0
    losses: int = 0
    lanes: dict[int, Lane] = field(default_factory=dict)


class _Anew(Exception):
    """What is known of the topic does not hold any more."""


class TopicFeed:
    """Feeds `ingest` from a source until `run` is cancelled; `make_source` makes a source for each connection."""

    def __init__(self, engine: Engine, ingest: Ingest, make_source: Callable[[], Source]) -> None:
        self.ingest = ingest
        self.counts = FeedCounts()
        self.there = False
        """Whether the topic is there, and is read."""
        self.waits_for: str | None = f"ingest {ingest.name} begins"
        self._sender = Sender(engine, ingest.name)
        self._engine = engine
        self._make_source = make_source
        self._topic_id = ""
        self._source: Source
        self._looked_s = 0.0

    @property
    def lanes(self) -> dict[int, Lane]:
        """By partition, those that are read now."""
        return self.counts.lanes

    @property
    def failing(self) -> str | None:
        """Why it does not go on now; None if it does."""
        return self.waits_for or self._sender.failing

    async def run(self) -> None:
        """Raises `ConfigurationError` if the brokers refuse the login for good."""
        while True:
            source = self._source = self._make_source()
            try:
                await source.open()
                await self._follow()
            except _Anew as why:
                self._waits(str(why))
            except (OSError, EngineFailed) as error:
                self.counts.losses += 1
                self._waits(f"{self.ingest.topic} cannot be read: {error}")
            finally:
                self.there = False
                await self._give_up()
                await source.close()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _follow(self) -> None:
        """Reads until something has to begin anew."""
        look = await self._source.look()
        if look is None:
            raise _Anew(f"there is no topic {self.ingest.topic}")
        self._topic_id = look.topic_id
        await self._begin(range(look.n_partitions), first=True)
        if self.waits_for is not None:
            _log.info("ingest %s reads %s, %d partitions", self.ingest.name, self.ingest.topic, look.n_partitions)
        self.there, self.waits_for = True, None
        while True:
            try:
                found = await self._source.read()
            except OutOfRange as error:
                await self._look()
                await self._out_of_range(error.partitions)
                continue
            self._take_results()
            idle = self._loop_s() - self._looked_s >= LOOK_SECONDS
            passed = await self._passed() if idle else {}
            if found or idle:
                await self._look()
            for partition, records in found.items():
                self._send(partition, records, records[-1].offset + 1)
            for partition, reached in passed.items():
                self._send(partition, [], reached)

    async def _passed(self) -> dict[int, int]:
        """Partitions of which nothing is on its way, and what is read next there stands behind offsets that no reader
        is given: marks of transactions, and what aborted ones have written. They are taken without records, or else
        they would count as a lag, and later as lost.
        """
        reached = {
            partition: await self._source.reached(partition)
            for partition, lane in self.lanes.items()
            if lane.sending is None and lane.short_since_s is None
        }
        return {partition: offset for partition, offset in reached.items() if offset > self.lanes[partition].next}

    async def _look(self) -> None:
        """Makes sure that what was read before is of the topic that is known; takes up new partitions."""
        look = await self._source.look()
        if look is None:
            raise _Anew(f"the topic {self.ingest.topic} was deleted")
        if look.topic_id != self._topic_id:
            raise _Anew(f"the topic {self.ingest.topic} was deleted and made anew")
        if look.n_partitions < len(self.lanes):
            raise _Anew(f"the topic {self.ingest.topic} has fewer partitions than before")
        now_s = self._loop_s()
        if now_s - self._looked_s >= LOOK_SECONDS:
            self._looked_s = now_s
            await self._measure()
        new = range(len(self.lanes), look.n_partitions)
        if new:
            _log.warning("ingest %s: %s has %d partitions now", self.ingest.name, self.ingest.topic, look.n_partitions)
            await self._begin(new, first=False)

    # Where to read -----------------------------------------------------------------------------------------

    async def _begin(self, partitions: range, first: bool) -> None:
        """Asks how far these partitions are taken, and reads on there. `first`: they are all that there are.

        A partition that comes later has records that came later, so it is read from its beginning. The first partition
        is asked about last: as long as it was never read, the topic was not.
        """
        latest = self.ingest.start == "latest" and first
        if latest:
            known = (await self._ask(0, "position"))[0]
            latest = known is None
        for partition in reversed(partitions):
            bounds = await self._source.bounds(partition)
            offset = bounds.end if latest else bounds.first
            position = position_of(await self._ask(partition, "begin", self._topic_id, offset))
            if position.topic_id != self._topic_id:
                position = await self._renew(partition, position)
            self.lanes[partition] = Lane(position.next, position, bounds.end)
        await self._measure()
        self._place()

    async def _renew(self, partition: int, position: Position) -> Position:
        bounds = await self._source.bounds(partition)
        renewed = position_of(await self._ask(partition, "renew", self._topic_id, bounds.first))
        if renewed.topic_id != self._topic_id:
            shown = "an earlier topic" if self._topic_id else "no id any more of the topic"
            raise _Anew(f"the brokers show {shown} {self.ingest.topic}")
        if self._topic_id in position.former:
            _log.warning("ingest %s: %s is again the topic it was before", self.ingest.name, self.ingest.topic)
            return renewed
        _log.error(
            "ingest %s: %s was deleted and made anew: what stood in partition %d from offset %d on was not read; the "
            "new topic is read from offset %d on",
            self.ingest.name,
            self.ingest.topic,
            partition,
            position.next,
            renewed.next,
        )
        return renewed

    def _place(self) -> None:
        """Reads every partition on where it is; those with batches on their way wait."""
        self._source.read_from({partition: lane.next for partition, lane in self.lanes.items()})
        for partition, lane in self.lanes.items():
            if lane.sending is not None or lane.short_since_s is not None:
                self._source.pause(partition)

    async def _out_of_range(self, partitions: list[int]) -> None:
        """A partition lacks the offset at which it is to be read: says what is lost, and goes on behind it."""
        for partition in partitions:
            lane = self.lanes[partition]
            await self._sent(lane)
            bounds = await self._source.bounds(partition)
            if lane.next < bounds.first:
                lane.position = position_of(await self._ask(partition, "skip", self._topic_id, bounds.first))
                _log.error(
                    "ingest %s: offsets %d to %d of %s, partition %d, were deleted before they were read",
                    self.ingest.name,
                    lane.next,
                    bounds.first - 1,
                    self.ingest.topic,
                    partition,
                )
                lane.next = max(lane.position.next, bounds.first)
            elif lane.next > bounds.end and lane.short_since_s is None:
                lane.short_since_s = self._loop_s()
        self._place()

    async def _shortened(self, partition: int, lane: Lane) -> None:
        """A partition that ends before what was taken: after a while, believes it."""
        if lane.short_since_s is None:
            return
        if lane.end < lane.next:
            if self._loop_s() - lane.short_since_s < SHORT_SECONDS:
                return
            lane.position = position_of(await self._ask(partition, "shorten", self._topic_id, lane.end))
            _log.error(
                "ingest %s: %s, partition %d, ends at offset %d, but records before offset %d were taken: its brokers "
                "have lost them; reading goes on at its end",
                self.ingest.name,
                self.ingest.topic,
                partition,
                lane.end,
                lane.next,
            )
            lane.next = lane.position.next
        lane.short_since_s = None
        self._place()

    async def _measure(self) -> None:
        """How far each partition reaches, and what its entity has counted."""
        for partition, lane in list(self.lanes.items()):
            lane.end = (await self._source.bounds(partition)).end
            position, lane.set_aside, lane.left_out = await self._ask(partition, "position")
            if position is not None:
                lane.position = position_of(position)
                self._check_topic(lane.position)
            await self._shortened(partition, lane)

    def _check_topic(self, position: Position) -> None:
        if position.topic_id != self._topic_id:
            raise _Anew(f"another process reads another topic {self.ingest.topic}")

    # Sending -----------------------------------------------------------------------------------------------

    def _send(self, partition: int, records: list[SourceRecord], end: int) -> None:
        """Begins to send what stands before the offset `end`."""
        lane = self.lanes.get(partition)
        if lane is None or lane.sending is not None or end <= lane.next:
            return
        self._source.pause(partition)
        begin, lane.next = lane.next, end
        lane.sending = asyncio.create_task(self._send_all(partition, lane, begin, records))

    async def _send_all(self, partition: int, lane: Lane, begin: int, records: list[SourceRecord]) -> int:
        """Sends batch by batch; gives the offset at which to read on."""
        end = lane.next
        batches = cut(self._topic_id, begin, records, record_bytes_max(self._engine.limits))
        for batch in batches if records else [Batch(self._topic_id, begin, end, [])]:
            while True:
                outcome = outcome_of(await self._ask(partition, "take", batch))
                lane.position = outcome.position
                if outcome.what != BUSY:
                    break
                self.counts.waits += 1
                await asyncio.sleep(BUSY_SECONDS)
            if outcome.what != TAKEN:
                self._check_topic(outcome.position)
                return outcome.position.next
            self.counts.batches += 1
            self.counts.records += len(batch.records)
            self.counts.bytes += sum(len(each.value or b"") for each in batch.records)
        return max(end, lane.position.next)

    def _take_results(self) -> None:
        """Reads on where all batches were taken; raises what sending raised."""
        moved = False
        for partition, lane in self.lanes.items():
            if lane.sending is None or not lane.sending.done():
                continue
            following = lane.sending.result()
            lane.sending = None
            if following == lane.next:
                self._source.resume(partition)
            else:
                lane.next, moved = following, True
        if moved:
            self._place()

    async def _sent(self, lane: Lane) -> None:
        """Waits for what is on its way of one partition."""
        if lane.sending is not None:
            lane.next = await lane.sending
            lane.sending = None

    async def _give_up(self) -> None:
        sending = [lane.sending for lane in self.lanes.values() if lane.sending is not None]
        for each in sending:
            each.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
        self.lanes.clear()

    async def _ask(self, partition: int, function: str, *args: Any) -> Any:
        return await self._sender.ask((self.ingest.topic, partition), function, *args)

    def _waits(self, why: str) -> None:
        if why != self.waits_for:
            _log.warning("ingest %s: %s; it goes on as soon as it can", self.ingest.name, why)
        self.waits_for = why

    def _loop_s(self) -> float:
        return asyncio.get_running_loop().time()


def same_reading(one: Ingest, other: Ingest) -> bool:
    """Whether two versions of an ingest read the same topic from the same place."""
    return (one.topic, one.start) == (other.topic, other.start)

"""What an ingest's entity does with the records of its partition: take them in order, once, and hand on each by itself.

A batch of records is one transaction, which moves the offset and gives each record to the entity's agenda. So the
records of a partition are handled in their order, each in a transaction of its own; a record at which that fails is
tried again, and then kept among the dead calls. A record that can become no call goes there at once, with the reason.
Nothing here decodes a record while the batch is taken, so no record can keep the others from being taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from styx.errors import BadRecord, describe
from styx.model.agenda import ATTEMPTS_MAX, Retry
from styx.model.context import Context
from styx.model.ingest_position import (
    BUSY,
    ELSEWHERE,
    GAPS_MAX,
    TAKEN,
    WAITING_MAX,
    Batch,
    Outcome,
    Position,
    RawRecord,
)

if TYPE_CHECKING:
    from styx.model.ingest import Ingest

RECORD: Final = "record"
"""The function that an entity calls for each record."""
COUNTS: Final = "counts"
"""The table of an ingest with a row for each of these."""
SET_ASIDE: Final = "set_aside"
"""Counts records that could become no call."""
LEFT_OUT: Final = "left_out"
"""Counts records that `where=` has left out."""

_ONCE: Final = Retry(attempts=1)
_SURELY: Final = Retry(attempts=ATTEMPTS_MAX)


class Count(msgspec.Struct):
    """How many records of the entity's partition there were of the kind `name`."""

    name: str
    number: int = 0


class IngestFunctions:
    """The functions of one ingest. All but `record` and `settled` are called by `styx ingest`, any number of times."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest

    async def begin(self, ctx: Context, topic_id: str, offset: int) -> Position:
        """The position, which is `offset` if the partition was never read before. Brokers that tell no id are followed
        by some that do, as those of a later version, and the topic is the same.
        """
        position: Position | None = await ctx.get()
        if position is None:
            position = Position(offset, topic_id)
            await ctx.put(position)
        elif topic_id and not position.topic_id:
            position.topic_id = topic_id
            await ctx.put(position)
        rows = ctx.rows(self._ingest.counts)
        for name in (SET_ASIDE, LEFT_OUT):
            if await rows.get(name) is None:  # a version without the ingest may have dropped them
                rows.put(Count(name))
        return position

    async def take(self, ctx: Context, batch: Batch) -> Outcome:
        """Takes the records of a batch that were not taken before, if it continues what was taken."""
        position: Position | None = await ctx.get()
        if position is None or position.topic_id != batch.topic_id or batch.begin > position.next:
            return Outcome(ELSEWHERE, position or Position(0))
        if batch.end <= position.next:
            return Outcome(TAKEN, position)
        if position.waiting >= WAITING_MAX:
            return Outcome(BUSY, position)
        new = [record for record in batch.records if record.offset >= position.next]
        for record in new:
            ctx.after_commit(self._ingest, self.record, ctx.key, (record,), retry=self._ingest.retry)
        if new:
            ctx.after_commit(self._ingest, self.settled, ctx.key, (len(new),), retry=_SURELY)
        position.next = batch.end
        position.taken += len(new)
        await ctx.put(position)
        return Outcome(TAKEN, position)

    async def record(self, ctx: Context, record: RawRecord, refused: str | bool = False) -> str:
        """Makes the call, or emits the event, that a record becomes. `refused`: the reason for which it is set aside,
        whatever a version that has come meanwhile could make of it, since later records may have gone by; or True, for
        one that was set aside and that somebody tries again.
        """
        if isinstance(refused, str):
            raise BadRecord(refused)
        topic, partition = ctx.key  # the topic of the version that has taken it, which may read another one now
        try:
            made = self._ingest.made(topic, partition, record)
        except BadRecord as error:
            if refused:
                raise
            ctx.after_commit(self._ingest, self.record, ctx.key, (record, describe(error)[1]), retry=_ONCE)
            ctx.rows(self._ingest.counts).add(SET_ASIDE, number=1)
            return SET_ASIDE
        if not made.wanted:
            ctx.rows(self._ingest.counts).add(LEFT_OUT, number=1)
            return LEFT_OUT
        if self._ingest.to is None:
            ctx.emit(self._ingest.event, *made.params, key=made.key)
        else:
            ctx.call_async(self._ingest.to, self._ingest.to_function, made.key, made.params)
        return TAKEN

    async def settled(self, ctx: Context, number: int) -> None:
        """All records of a batch have been handled, or put off: there is room for `number` others."""
        position: Position = await ctx.get()
        position.settled += number
        await ctx.put(position)

    # What can happen to a topic ----------------------------------------------------------------------------

    async def renew(self, ctx: Context, topic_id: str, offset: int) -> Position:
        """The topic was deleted, and there is another one of its name: goes on there, at `offset`. A topic whose id is
        not told is no other one.
        """
        position: Position = await ctx.get()
        if position.renew(topic_id, offset):
            await ctx.put(position)
        return position

    async def skip(self, ctx: Context, topic_id: str, first: int) -> Position:
        """The topic no longer has what stands before `first`: goes on there, and counts what was lost."""
        position: Position = await ctx.get()
        if topic_id == position.topic_id and position.next < first:
            position.gaps = [*position.gaps, (position.next, first)][-GAPS_MAX:]
            position.lost += first - position.next
            position.next = first
            await ctx.put(position)
        return position

    async def shorten(self, ctx: Context, topic_id: str, end: int) -> Position:
        """The brokers have lost records at the topic's end that were taken: what comes at `end` is new."""
        position: Position = await ctx.get()
        if topic_id == position.topic_id and position.next > end:
            position.next = end
            await ctx.put(position)
        return position

    async def position(self, ctx: Context) -> list[Any]:
        """The position, None before the first record, and how many records were set aside and left out."""
        rows = ctx.rows(self._ingest.counts)
        counts = [await rows.get(name) for name in (SET_ASIDE, LEFT_OUT)]
        return [await ctx.get(), *(0 if each is None else each.number for each in counts)]

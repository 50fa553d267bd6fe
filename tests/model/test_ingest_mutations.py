"""The rules by which an ingest takes records, each broken once: what is sent in any order and any number of times must
then show it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from styx.model.context import Context
from styx.model.ingest import Ingest
from styx.model.ingest_functions import IngestFunctions
from styx.model.ingest_position import ELSEWHERE, TAKEN, Batch, Outcome, Position
from styx.testing import embedded_cluster
from tests.model.ingest_app import TOPIC, made_app, pay, raw

pytestmark = pytest.mark.anyio
RECORDS = 60
SEEDS = range(6)


async def sent_in_any_way(seed: int) -> None:
    """Sends the records of a topic, and then of the topic that took its place, as several feeds that are killed would:
    batches of any bounds, repeated, early, late and of the other topic. Checks what the app was told.
    """
    rng = random.Random(seed)
    app, _ = made_app()
    async with embedded_cluster(app) as cluster:

        async def told(function: str, *args: Any) -> Any:
            return await cluster.call("payments", (TOPIC, 0), function, *args)

        async def take(topic_id: str) -> Any:
            begin = rng.randrange(RECORDS)
            end = min(RECORDS, begin + rng.randrange(1, 20))
            records = [raw(offset, pay(topic_id, offset)) for offset in range(begin, end) if offset % 7]
            return await told("take", Batch(topic_id, begin, end, records))

        expected: list[int] = [offset for offset in range(RECORDS) if offset % 7]
        await told("begin", "t1", 0)
        for topic_id, other in (("t1", "t2"), ("t2", "t1")):
            while True:
                what, position = await take(topic_id)
                if rng.random() < 0.3:
                    assert (await take(other))[0] == ELSEWHERE, "of another topic"
                if position["next"] >= RECORDS:
                    break
                assert what in (TAKEN, ELSEWHERE)
            await cluster.advance(timedelta(0))
            assert cluster.entity("account", topic_id) == expected, "each once and in order"
            position = (await told("position"))[0]
            assert position["taken"] == position["settled"], "there is room again"
            await told("renew", other, 0)


@pytest.mark.parametrize("seed", SEEDS)
async def test_each_record_is_handled_once(seed: int) -> None:
    await sent_in_any_way(seed)


_take = IngestFunctions.take


async def _without_gaps(self: IngestFunctions, ctx: Context, batch: Batch) -> Outcome:
    position: Position = await ctx.get()
    begin = min(batch.begin, position.next)
    return await _take(self, ctx, Batch(batch.topic_id, begin, batch.end, batch.records))


async def _twice(self: IngestFunctions, ctx: Context, batch: Batch) -> Outcome:
    position: Position = await ctx.get()
    outcome = await _take(self, ctx, batch)
    for record in batch.records:
        if record.offset < position.next < batch.end:
            ctx.after_commit(_ingest_of(self), self.record, ctx.key, (record,))
    return outcome


async def _of_any_topic(self: IngestFunctions, ctx: Context, batch: Batch) -> Outcome:
    position: Position = await ctx.get()
    return await _take(self, ctx, Batch(position.topic_id, batch.begin, batch.end, batch.records))


async def _standing_still(self: IngestFunctions, ctx: Context, batch: Batch) -> Outcome:
    position: Position = await ctx.get()
    before = position.next
    outcome = await _take(self, ctx, batch)
    if outcome.position.next > before and batch.begin % 2:
        position.next = before
        await ctx.put(position)
    return outcome


async def _backwards(self: IngestFunctions, ctx: Context, batch: Batch) -> Outcome:
    return await _take(self, ctx, Batch(batch.topic_id, batch.begin, batch.end, batch.records[::-1]))


async def _never_settled(self: IngestFunctions, ctx: Context, number: int) -> None:
    await ctx.get()


async def _renewed_again(self: IngestFunctions, ctx: Context, topic_id: str, offset: int) -> Position:
    position: Position = await ctx.get()
    position.topic_id, position.next = topic_id, offset
    await ctx.put(position)
    return position


def _ingest_of(functions: IngestFunctions) -> Ingest:
    return functions._ingest


MUTATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "a gap is passed over": ("take", _without_gaps),
    "an overlap is taken twice": ("take", _twice),
    "a batch of another topic is taken": ("take", _of_any_topic),
    "the offset does not move": ("take", _standing_still),
    "records are handed on backwards": ("take", _backwards),
    "room is never made again": ("settled", _never_settled),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
async def test_a_broken_rule_shows(mutation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, mutant = MUTATIONS[mutation]
    mutant.__name__ = name
    monkeypatch.setattr(IngestFunctions, name, mutant)
    with pytest.raises(AssertionError):
        await _sent_in_all_ways()


async def _sent_in_all_ways() -> None:
    for seed in SEEDS:
        await sent_in_any_way(seed)


async def test_a_topic_that_comes_back_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    async def goes_back() -> None:
        app, _ = made_app()
        async with embedded_cluster(app) as cluster:
            await cluster.call("payments", (TOPIC, 0), "begin", "t1", 0)
            for topic_id, following in (("t2", 0), ("t1", 3), ("t2", 0)):
                if topic_id == "t2":
                    records = [raw(offset, pay("ada", offset)) for offset in range(3)]
                    await cluster.call("payments", (TOPIC, 0), "take", Batch("t1", 0, 3, records))
                position = await cluster.call("payments", (TOPIC, 0), "renew", topic_id, 0)
                assert (position["topic_id"], position["next"]) == (topic_id, following)

    await goes_back()
    _renewed_again.__name__ = "renew"
    monkeypatch.setattr(IngestFunctions, "renew", _renewed_again)
    with pytest.raises(AssertionError):
        await goes_back()

"""Mutation proof for foreign records: each rule by which they are taken, broken, is caught by the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from msgspec.structs import replace

from proof.simulation.plan import Fault
from proof.simulation.versions import forget_versions
from styx.errors import BadRecord
from styx.model.context import Context
from styx.model.ingest_functions import LEFT_OUT, SET_ASIDE, IngestFunctions
from styx.model.ingest_position import BUSY, ELSEWHERE, TAKEN, Batch, Outcome, Position, RawRecord
from tests.plain_form import plain_form
from tests.simulation.mutation import Mutation, assert_caught

pytestmark = plain_form

BUSY_INGEST = {"ingests": 0.5, "emits": 1.0, "invocations_max": 10_000, "call_bytes": 0}

MADE_ANEW = BUSY_INGEST | {
    "faults": tuple(
        Fault(kind, 0.05 + 0.1 * number, 0.02)
        for number in range(9)
        for kind in ("second ingest", "foreign topic made anew", "foreign topic made anew", "ingest killed")[
            number % 3 :
        ]
    ),
    "duration_s": 1.0,
}
"""Topics are made anew again and again, while processes come and go."""

_take, _begin, _record = IngestFunctions.take, IngestFunctions.begin, IngestFunctions.record


def _takes(patch: pytest.MonkeyPatch, take: Callable[[IngestFunctions, Context, Batch], Any]) -> None:
    _put(patch, "take", take)


def _put(patch: pytest.MonkeyPatch, name: str, function: Any) -> None:
    function.__name__ = name  # it is registered under it
    patch.setattr(IngestFunctions, name, function)


def the_offset_moves_in_a_transaction_before(patch: pytest.MonkeyPatch) -> None:
    async def take(self: IngestFunctions, ctx: Context, batch: Batch) -> Outcome:
        position: Position | None = await ctx.get()
        if position is None or position.topic_id != batch.topic_id or batch.begin > position.next:
            return Outcome(ELSEWHERE, position or Position(0))
        mine = position.lost == -batch.begin - 1
        if not mine and batch.end <= position.next:
            return Outcome(TAKEN, position)
        if not mine:
            position.next, position.lost = batch.end, -batch.begin - 1
            await ctx.put(position)
            return Outcome(BUSY, position)
        for record in batch.records:
            ctx.after_commit(self._ingest, self.record, ctx.key, (record,), retry=self._ingest.retry)
        position.taken += len(batch.records)
        position.settled, position.lost = position.taken, 0
        await ctx.put(position)
        return Outcome(TAKEN, position)

    _takes(patch, take)


def the_offset_is_not_compared(patch: pytest.MonkeyPatch) -> None:
    """A batch of a process that has long been replaced is taken once more."""

    async def take(self: IngestFunctions, ctx: Context, batch: Batch) -> Outcome:
        position: Position = await ctx.get()
        before = position.next
        if position.topic_id == batch.topic_id:
            position.next = batch.begin
            await ctx.put(position)
        outcome = await _take(self, ctx, batch)
        if outcome.position.next < before:
            outcome.position.next = before
            await ctx.put(outcome.position)
        return outcome

    _takes(patch, take)


def poison_stops_its_batch(patch: pytest.MonkeyPatch) -> None:
    async def take(self: IngestFunctions, ctx: Context, batch: Batch) -> Outcome:
        for record in batch.records:
            self._ingest.made(ctx.key[0], ctx.key[1], record)
        return await _take(self, ctx, batch)

    _takes(patch, take)


def poison_is_lost(patch: pytest.MonkeyPatch) -> None:
    async def record(self: IngestFunctions, ctx: Context, record: RawRecord, refused: str | bool = False) -> str:
        try:
            self._ingest.made(ctx.key[0], ctx.key[1], record)
        except BadRecord:
            ctx.rows(self._ingest.counts).add(SET_ASIDE, number=1)
            return SET_ASIDE
        return await _record(self, ctx, record, refused)

    _put(patch, "record", record)


def poison_counts_as_left_out(patch: pytest.MonkeyPatch) -> None:
    async def record(self: IngestFunctions, ctx: Context, record: RawRecord, refused: str | bool = False) -> str:
        try:
            self._ingest.made(ctx.key[0], ctx.key[1], record)
        except BadRecord:
            ctx.rows(self._ingest.counts).add(LEFT_OUT, number=1)
            return LEFT_OUT
        return await _record(self, ctx, record, refused)

    _put(patch, "record", record)


def a_call_that_fails_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    async def record(self: IngestFunctions, ctx: Context, record: RawRecord, refused: str | bool = False) -> str:
        ingest = self._ingest
        if ingest.to is None or refused:
            return await _record(self, ctx, record, refused)
        try:
            made = ingest.made(ctx.key[0], ctx.key[1], record)
        except BadRecord:
            return await _record(self, ctx, record, refused)
        if made.wanted and "failing" not in str(made.params):
            ctx.call_async(ingest.to, ingest.to_function, made.key, made.params)
        return TAKEN

    _put(patch, "record", record)


def a_call_that_fails_keeps_what_it_did(patch: pytest.MonkeyPatch) -> None:
    """What the record's function has written first is there although it has ended with an exception."""

    async def record(self: IngestFunctions, ctx: Context, record: RawRecord, refused: str | bool = False) -> str:
        ingest = self._ingest
        outcome = await _record(self, ctx, record, refused)
        if ingest.to is not None and outcome == TAKEN:
            made = ingest.made(ctx.key[0], ctx.key[1], record)
            number, told = made.params
            if told.kind == "failing":
                early = (number, replace(told, kind="steady"))
                cast("list[Any]", ctx._made).clear()
                ctx.after_commit(ingest.to, ingest.to_function, made.key, early)
                ctx.after_commit(ingest.to, ingest.to_function, made.key, made.params, retry=ingest.retry)
        return outcome

    _put(patch, "record", record)


def records_are_handed_on_backwards(patch: pytest.MonkeyPatch) -> None:
    async def take(self: IngestFunctions, ctx: Context, batch: Batch) -> Outcome:
        return await _take(self, ctx, replace(batch, records=batch.records[::-1]))

    _takes(patch, take)


def who_begins_begins_anew(patch: pytest.MonkeyPatch) -> None:
    async def begin(self: IngestFunctions, ctx: Context, topic_id: str, offset: int) -> Position:
        position = await _begin(self, ctx, topic_id, offset)
        if topic_id == position.topic_id:
            position.next = offset
            await ctx.put(position)
        return position

    _put(patch, "begin", begin)


def a_topic_that_was_renewed_comes_back(patch: pytest.MonkeyPatch) -> None:
    """A process that has not noticed yet goes back to the topic before."""

    async def renew(self: IngestFunctions, ctx: Context, topic_id: str, offset: int) -> Position:
        position: Position = await ctx.get()
        position.topic_id, position.next = topic_id, offset
        await ctx.put(position)
        return position

    _put(patch, "renew", renew)


def what_is_gone_is_skipped_twice(patch: pytest.MonkeyPatch) -> None:
    async def skip(self: IngestFunctions, ctx: Context, topic_id: str, first: int) -> Position:
        position: Position = await ctx.get()
        position.next = first
        await ctx.put(position)
        return position

    _put(patch, "skip", skip)


def room_is_never_made_again(patch: pytest.MonkeyPatch) -> None:
    async def settled(self: IngestFunctions, ctx: Context, number: int) -> None:
        await ctx.get()

    _put(patch, "settled", settled)


MUTATIONS = [
    the_offset_moves_in_a_transaction_before,
    the_offset_is_not_compared,
    poison_stops_its_batch,
    poison_is_lost,
    poison_counts_as_left_out,
    a_call_that_fails_is_forgotten,
    a_call_that_fails_keeps_what_it_did,
    records_are_handed_on_backwards,
    who_begins_begins_anew,
    a_topic_that_was_renewed_comes_back,
    what_is_gone_is_skipped_twice,
    room_is_never_made_again,
]
ONLY_WHERE_TOPICS_CHANGE = (a_topic_that_was_renewed_comes_back,)
NOTICED_BY: dict[Mutation, int] = {
    the_offset_moves_in_a_transaction_before: 1,
    the_offset_is_not_compared: 1,
    who_begins_begins_anew: 3,
    a_topic_that_was_renewed_comes_back: 3,
    what_is_gone_is_skipped_twice: 12,
}
"""Seeds that notice what few do."""


@pytest.fixture(autouse=True)
def _made_anew() -> Iterator[None]:
    """Apps have the functions that an ingest had when they were made."""
    forget_versions()
    yield
    forget_versions()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_simulator_catches(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    pace = MADE_ANEW if mutation in ONLY_WHERE_TOPICS_CHANGE else BUSY_INGEST
    assert_caught(mutation, pace, cluster=False, first=NOTICED_BY.get(mutation, 0))

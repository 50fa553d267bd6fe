"""A timed worker's epochs, driven as a session drives them: every step once an epoch, and together the whole of it."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import pytest

from styx import App, Context, Operator
from styx.cluster.worker import epoch_watch
from styx.cluster.worker.epoch_watch import EpochSpans, EpochWatch, Span, TimedSteps
from styx.cluster.worker.time_breakdown import EPOCHS_PER_SAMPLE
from styx.coordinator import events as coordinator_events
from styx.coordinator.coordinator import Coordinator
from styx.log.base import Record
from styx.messages import ReplyRecord, Request, encode_request
from styx.model.limits import Limits
from styx.protocol.messages import Recover
from styx.state.slot_state import SlotState
from styx.worker import events as worker_events
from styx.worker.worker import Worker

SENT_US = 5_000_000
NOW_S = 7.0

account = Operator("account")


@account.register
async def add(ctx: Context, amount: int) -> int:
    balance: int = await ctx.state.get(0) + amount
    await ctx.put(balance)
    return balance


@account.register
async def close(ctx: Context) -> None:
    await ctx.delete()
    raise ValueError("it cannot be closed")


@account.register
async def add_to_all(ctx: Context, others: list[str]) -> None:
    for other in others:
        ctx.call_async(account, add, other, (1,))
    await ctx.call(account, add, "sum", (len(others),))


app = App("bank", [account])


class Clock:
    """One second later at each look."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


class Session:
    """A worker with all slots and its coordinator; tells the watch what a `WorkerSession` tells it."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.watch = EpochWatch(self.clock, lambda: NOW_S)
        self.worker = Worker(0, app, 2, Limits(), watch=self.watch)
        self.timed = TimedSteps(self.worker, self.watch, lambda *_: None)
        self.replies: list[ReplyRecord] = []
        self._coordinator = Coordinator(2, snapshot_interval_s=float("inf"))
        self._events: deque[worker_events.Event] = deque()
        self._offset = 0
        self._tell(coordinator_events.Started(0, []))
        self._tell(coordinator_events.WorkerJoined(0))
        self.settle()

    def send(self, *calls: tuple[str, str, list[Any]]) -> None:
        """Requests (key, function, arguments) that come together."""
        for key, function, arguments in calls:
            payload = encode_request(Request(key, "account", key, function, msgspec.msgpack.encode(arguments)))
            slot = account.partition_of(key, 2) % 2
            arrival = Record(self._offset, SENT_US, payload)
            self._offset += 1
            self._events.append(worker_events.RequestsArrived(self.worker.generation, slot, [arrival]))
        self.settle()

    def settle(self) -> None:
        while self._events or self.worker.runnable:
            while self._events:
                self._step(self._events.popleft())
            if self.worker.runnable:
                self._step(worker_events.Proceed())
            sent_us = self.watch.pass_ended(self.worker.executor, self.worker.runnable)
            if sent_us:
                self.watch.durable(sent_us)

    def _step(self, event: worker_events.Event) -> None:
        for effect in self.timed.step(event):
            if isinstance(effect, worker_events.Tell):
                self._tell(coordinator_events.WorkerSaid(0, effect.message))
                self.watch.said(effect.message)
            elif isinstance(effect, worker_events.AppendEpochRecord):
                self._events.append(worker_events.RecordDurable(effect.generation, effect.epoch))
            elif isinstance(effect, worker_events.EmitReplies):
                self.replies += effect.replies
                self.watch.replied(effect.replies, 0.25)
            elif isinstance(effect, worker_events.LoadState):
                empty = {slot: worker_events.LoadedSlot(SlotState(), 0, []) for slot in effect.slots}
                self._events.append(worker_events.StateLoaded(effect.generation, -1, 0, empty, [], {}))

    def _tell(self, event: coordinator_events.Event) -> None:
        for effect in self._coordinator.step(event):
            if isinstance(effect, coordinator_events.TellWorker):
                self._events.append(worker_events.CoordinatorSaid(effect.message))
            elif isinstance(effect, coordinator_events.FenceMembers):
                self._tell(coordinator_events.MembersFenced(effect.generation))
            elif isinstance(effect, coordinator_events.AppendMarker):
                self._tell(coordinator_events.MarkerAppended(effect.generation))

    def recover(self) -> None:
        """A new generation, in the midst of whatever there is."""
        self.worker.step(worker_events.CoordinatorSaid(Recover(self.worker.generation + 1, {0: 0, 1: 0}, None)))


def test_every_step_is_observed_once_an_epoch_and_they_add_up() -> None:
    session = Session()
    for number in range(3):
        session.send((f"k{number}", "add", [1]))
    session.send(*(("hot", "add", [1]) for _ in range(5)))
    watch = session.watch
    epochs = watch.spans.whole.count
    assert epochs == session.worker.epoch + 1 >= 4
    assert [histogram.count for histogram in watch.spans.by_span] == [epochs] * len(Span)
    assert sum(histogram.total for histogram in watch.spans.by_span) == watch.spans.whole.total
    for span in Span:
        if span not in (Span.RECORD, Span.BARRIER_1):  # it is durable at once, and there is nobody to wait for
            assert watch.spans.by_span[span].total > 0, span.name
    assert watch.sizes.count == epochs
    assert watch.sizes.total == 8


def test_calls_are_counted_with_those_that_requests_make() -> None:
    session = Session()
    session.send(("a", "add_to_all", [["b", "c", "d"]]), ("e", "close", []))
    assert session.watch.calls == 5 + 1
    session.recover()
    assert session.worker.executor.calls == 0
    assert session.watch.calls == 6, "generations come and go"


def test_what_queries_read_outlives_a_generation() -> None:
    session = Session()
    for expected in (3, 6):
        session.worker.executor.range_counts.read("cart/items", 3)
        session.send(("a", "add", [1]))
        assert session.watch.range_counts.rows_read == {"cart/items": expected}
    session.recover()
    assert session.worker.executor.range_counts.rows_read == {}
    assert session.watch.range_counts.rows_read == {"cart/items": 6}


def test_conflicts_rounds_and_latency() -> None:
    session = Session()
    session.send(*(("hot", "add", [1]) for _ in range(5)))
    watch = session.watch
    again = sum(reply.phase == 2 for reply in session.replies)
    assert len(session.replies) == 5
    assert again > 0
    assert (watch.locked, watch.left) == (again, 0)
    assert watch.rounds.count == watch.rounds.total == 1
    assert (watch.latency.count, watch.latency.total) == (5, 5 * (NOW_S - SENT_US / 1e6))


def test_a_generation_that_ends_amid_an_epoch_counts_nothing() -> None:
    session = Session()
    request = encode_request(Request("r", "account", "k", "add", msgspec.msgpack.encode([1])))
    slot = account.partition_of("k", 2) % 2
    session.worker.step(worker_events.RequestsArrived(session.worker.generation, slot, [Record(0, 0, request)]))
    assert session.watch.spans.span is Span.EXECUTION
    session.recover()
    assert session.watch.spans.span is None
    assert session.watch.pass_ended(session.worker.executor, False) == []
    assert session.watch.spans.whole.count == session.watch.sizes.count == 0


def test_a_broker_whose_clock_is_ahead() -> None:
    watch = EpochWatch(Clock(), lambda: NOW_S)
    watch.durable([8_000_000])
    assert (watch.latency.count, watch.latency.total) == (1, 0.0)


def test_sampled_epochs_are_accounted_for_to_the_last_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_watch, "EPOCHS_PER_SAMPLE", 1)
    session = Session()
    monkeypatch.setattr("styx.cluster.worker.time_breakdown.perf_counter", session.clock)
    session.send(*(("hot", "add", [1]) for _ in range(3)), ("cold", "close", []))
    watch = session.watch
    seconds = watch.breakdown.seconds
    assert watch.breakdown.transactions == 4
    assert sum(seconds.values()) == pytest.approx(watch.spans.whole.total)
    # Seven uses of state in the execution step, and those of each transaction in conflict again in the lock phase.
    assert seconds["state"] == 7 + 2 * watch.locked
    assert watch.locked > 0
    assert seconds["function"] > 0
    assert seconds["protocol"] > 0
    assert seconds["network"] == 0
    assert [reply.error for reply in session.replies].count(None) == 3


def test_one_epoch_in_many_is_sampled_and_the_others_run_plain_contexts() -> None:
    session = Session()
    for number in range(EPOCHS_PER_SAMPLE * 2 + 1):
        session.send((f"k{number}", "add", [1]))
    epochs = session.watch.spans.whole.count
    assert session.watch.breakdown.transactions == epochs // EPOCHS_PER_SAMPLE
    assert not session.watch.sampling


def test_replies_of_an_epoch_that_has_ended_are_not_the_next_one_s() -> None:
    clock = Clock()
    spans = EpochSpans(clock)
    spans.begin()
    spans.enter(Span.COMMIT)
    spans.end()
    spans.begin()
    spans.replied(0.5)
    assert spans.flush() == 2.5
    assert spans.by_span[Span.REPLIES].total == 0.5
    spans.replied(0.25)
    spans.end()
    assert spans.flush() == 0.5, "a second, half of which was the first one's"
    assert spans.flush() is None

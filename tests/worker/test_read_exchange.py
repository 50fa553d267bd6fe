"""Reads of a cluster's workers: whole reads, parts of peers, fences; and that nothing outlives who asked for it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from styx.messages import Request, encode_request
from styx.model.app import App
from styx.model.context import Context
from styx.model.limits import Limits
from styx.model.operator import Operator
from styx.model.request import AppRouter
from styx.protocol.messages import Commit, Join, Recover, Resume, Validate
from styx.protocol.reads import (
    READ_NUMBERS,
    PartAnswered,
    PartAsked,
    PartDropped,
    PartFailed,
    PartReturned,
    ReadAsked,
    ReadPart,
)
from styx.state.slot_state import SlotState
from styx.worker import read_exchange
from styx.worker.events import (
    AppendEpochRecord,
    CoordinatorSaid,
    Effect,
    EpochWanted,
    LoadedSlot,
    Proceed,
    RecordDurable,
    RequestsArrived,
    StateLoaded,
    Step,
    Tell,
)
from styx.worker.read_exchange import ReadExchange, ToClient, ToPeer
from styx.worker.worker import Worker

N_SLOTS = 2
GATEWAY = 50

account = Operator("account")


@account.register
async def put(ctx: Context, value: int) -> None:
    ctx.put(value)


@account.register(read_only=True)
async def value(ctx: Context) -> Any:
    return await ctx.get(0)


@account.register(read_only=True)
async def both(ctx: Context, other: str) -> list[Any]:
    return [await ctx.get(0), await ctx.call(account, value, other)]


app = App("bank", [account])
_router = AppRouter(app, N_SLOTS)
KEYS = {_router.place("account", f"k{n}")[1]: f"k{n}" for n in range(20)}
"""A key of each slot."""


class Pair:
    """Two workers of one slot each, step by step, with their exchanges; what is said between them waits in `wire`."""

    def __init__(self, generation: int = 1) -> None:
        self.workers = [Worker(number, app, N_SLOTS, Limits()) for number in range(2)]
        self.exchanges = [ReadExchange(worker) for worker in self.workers]
        self.wire: list[tuple[int, ToPeer]] = []
        self.answers: list[ToClient] = []
        self.undurable: list[list[AppendEpochRecord]] = [[], []]
        self.told: list[object] = []
        self.offsets = [0, 0]
        self.begin(generation)

    def begin(self, generation: int) -> None:
        """A generation begins, from nothing."""
        self.generation = generation
        self.undurable = [[], []]
        for number, worker in enumerate(self.workers):
            self.say(number, Recover(generation, {0: 0, 1: 1}, None, {0: "a/1", 1: "b/1"}))
            self.step(number, StateLoaded(generation, -1, 0, {number: LoadedSlot(SlotState(), 0, [])}, [], {}))
            self.say(number, Resume(generation))
            assert worker.reached is Step.IDLE

    def step(self, number: int, event: Any) -> list[Effect]:
        effects = self.workers[number].step(event)
        self.undurable[number] += [each for each in effects if isinstance(each, AppendEpochRecord)]
        self.told += [each.message for each in effects if isinstance(each, Tell)]
        return effects

    def say(self, number: int, message: Any) -> None:
        self.step(number, CoordinatorSaid(message))

    def durable(self, number: int) -> None:
        """The records that this worker has appended are durable."""
        records, self.undurable[number] = self.undurable[number], []
        for record in records:
            self.step(number, RecordDurable(record.generation, record.epoch))

    def put(self, slot: int, written: int) -> None:
        """A request to write arrives at a slot's worker."""
        payload = encode_request(Request("r", "account", KEYS[slot], "put", msgspec.msgpack.encode([written])))
        self.step(slot, RequestsArrived(self.generation, slot, [(self.offsets[slot], 0, payload)]))
        self.offsets[slot] += 1

    def join(self, epoch: int) -> None:
        for number in range(2):
            self.say(number, Join(self.generation, epoch))

    def run(self, number: int) -> None:
        """One worker runs what it has to."""
        while self.workers[number].runnable:
            self.step(number, Proceed())

    def close(self, epoch: int, numbers: tuple[int, ...] = (0, 1)) -> None:
        """Ends the epoch on these workers."""
        for number in numbers:
            self.run(number)
            if self.workers[number].reached is Step.EXECUTING:
                self.say(number, Validate(self.generation, epoch, 1, [], [], [], []))
            self.durable(number)
            self.say(number, Commit(self.generation, epoch, [], False))

    # Reads ----------------------------------------------------------------------------------------------------

    def ask(self, number: int, its_id: int, function: str, *args: Any, slot: int | None = None, **wanted: Any) -> None:
        key = KEYS[number if slot is None else slot]
        request = encode_request(Request("", "account", key, function, msgspec.msgpack.encode(list(args))))
        asked = ReadAsked(its_id, wanted.pop("generation", self.generation), request, **wanted)
        self.exchanges[number].asked(GATEWAY, asked, (1 << 62) + its_id, 0)
        self.go_on(number)

    def go_on(self, number: int) -> None:
        """The worker's reads go on, and what they say waits."""
        exchange = self.exchanges[number]
        while exchange.runnable:
            for sent in exchange.run(10):
                if isinstance(sent, ToClient):
                    self.answers.append(sent)
                else:
                    self.wire.append((number, sent))

    def deliver(self) -> None:
        """All that waits arrives, and what comes of it."""
        while self.wire:
            sender, sent = self.wire.pop(0)
            self.exchanges[sent.peer].heard(sender, sent.message)
            self.go_on(sent.peer)

    def result(self) -> tuple[int, Any]:
        """(epoch, value) of the one answer that has come."""
        (sent,) = self.answers
        self.answers = []
        assert sent.client == GATEWAY
        assert isinstance(sent.answer.end, PartReturned), sent
        return sent.answer.epoch, msgspec.msgpack.decode(sent.answer.end.value or b"")

    def code(self) -> str:
        """The code of the one answer that has come."""
        (sent,) = self.answers
        self.answers = []
        assert isinstance(sent.answer.end, PartFailed), sent
        return sent.answer.end.code

    def idle(self) -> None:
        """Nothing is under way, and nothing is remembered of what was."""
        for exchange in self.exchanges:
            assert not exchange.under_way
            assert not exchange._asked
            assert not exchange._asks
            assert not exchange._by_client
            assert not exchange._parts


def written(pair: Pair, epoch: int, first: int, second: int, numbers: tuple[int, ...] = (0, 1)) -> None:
    """An epoch in which both slots are written."""
    pair.put(0, first)
    pair.put(1, second)
    pair.join(epoch)
    pair.close(epoch, numbers)


def test_a_read_of_two_workers() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "both", KEYS[1])
    pair.deliver()
    assert pair.result() == (0, [3, 4])
    pair.idle()


def test_the_other_worker_may_not_have_closed_the_epoch_yet() -> None:
    pair = Pair()
    written(pair, 0, 3, 4, (0,))
    pair.ask(0, 1, "both", KEYS[1])
    pair.deliver()
    assert not pair.answers
    pair.close(0, (1,))
    pair.go_on(1)
    pair.deliver()
    assert pair.result() == (0, [3, 4])
    pair.idle()


def test_the_other_worker_may_be_ahead() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "both", KEYS[1])  # both keep versions from here on
    pair.deliver()
    pair.result()
    pair.ask(0, 2, "both", KEYS[1])
    written(pair, 1, 5, 6)
    pair.deliver()
    assert pair.result() == (0, [3, 4])
    pair.idle()


def test_a_part_of_a_generation_that_has_ended() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "both", KEYS[1])
    pair.say(1, Recover(2, {0: 0, 1: 1}, None, {0: "a/1", 1: "b/1"}))
    pair.deliver()
    assert pair.code() == "unavailable"
    pair.idle()


def test_what_runs_when_a_generation_ends_can_be_asked_again() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "both", KEYS[1])
    pair.begin(2)
    pair.go_on(0)
    assert pair.code() == "unavailable"
    assert [type(each.message) for _, each in pair.wire] == [PartAsked, PartDropped]
    pair.deliver()
    assert not pair.answers
    pair.idle()


def test_a_lost_peer_ends_what_waits_for_it_and_what_it_has_asked_for() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "both", KEYS[1])
    pair.exchanges[0].peer_lost(1)
    pair.go_on(0)
    assert pair.code() == "unavailable"
    pair.wire.clear()
    pair.ask(0, 2, "both", KEYS[1])  # nobody waits for a peer that is lost
    assert pair.code() == "unavailable"
    assert not pair.wire
    pair.idle()
    pair.ask(1, 3, "value", at_least=5)
    pair.exchanges[1].heard(0, PartAsked(1, 9, part_of(5)))
    assert pair.exchanges[1].under_way == 2
    pair.exchanges[1].peer_lost(0)
    assert pair.exchanges[1].under_way == 1
    pair.exchanges[1].client_gone(GATEWAY)
    pair.idle()


def part_of(epoch: int) -> Any:
    return ReadPart(READ_NUMBERS, 0, epoch, 1, "account", "value", KEYS[1], msgspec.msgpack.encode([]), b"\x00")


def test_a_dropped_read_is_dropped_at_the_other_worker_as_well() -> None:
    pair = Pair()
    written(pair, 0, 3, 4, (0,))
    pair.ask(0, 1, "both", KEYS[1])
    pair.deliver()
    assert pair.exchanges[1].under_way == 1
    pair.exchanges[0].dropped(GATEWAY, 1)
    pair.go_on(0)
    pair.deliver()
    assert not pair.answers
    pair.idle()
    pair.exchanges[0].dropped(GATEWAY, 1)  # it may cross the answer
    pair.idle()


def test_a_peer_that_is_lost_before_the_first_read_of_a_generation() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.begin(2)
    written(pair, 0, 3, 4)
    pair.exchanges[0].peer_lost(1)
    pair.ask(0, 1, "both", KEYS[1])
    assert pair.code() == "unavailable"
    pair.idle()


def test_a_gateway_that_goes_while_its_read_ends() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "both", KEYS[1], at=0)
    ((_, sent),) = pair.wire
    pair.wire.clear()
    too_old = PartFailed("snapshot_too_old", "SnapshotTooOld", "it is not kept any more")
    pair.exchanges[0].heard(1, PartAnswered(1, sent.message.id, too_old))
    pair.exchanges[0].client_gone(GATEWAY)
    pair.go_on(0)
    pair.idle()


def test_strict_reads_that_nobody_waits_for_leave_nothing() -> None:
    """A worker whose log stands still may hear of many."""
    pair = Pair()
    written(pair, 0, 3, 4)
    for number in range(500):
        pair.ask(0, number, "value", fenced=True)
        pair.exchanges[0].dropped(GATEWAY, number)
    assert len(pair.exchanges[0].reads._fenced) <= 101
    pair.ask(0, 500, "value", fenced=True)
    pair.join(1)
    pair.close(1)
    pair.go_on(0)
    assert pair.result() == (1, 3)


def test_an_answer_of_another_worker_than_was_asked_counts_for_nothing() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "both", KEYS[1])
    ((_, sent),) = pair.wire
    pair.exchanges[0].heard(7, PartAnswered(1, sent.message.id, PartReturned(msgspec.msgpack.encode(9), 2)))
    pair.go_on(0)
    assert not pair.answers
    pair.deliver()
    assert pair.result() == (0, [3, 4])


def test_limits_on_reads_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_exchange, "CLIENT_READS_MAX", 2)
    monkeypatch.setattr(read_exchange, "PARTS_MAX", 1)
    pair = Pair()
    for its_id in range(2):
        pair.ask(0, its_id, "value", at_least=5)
    pair.ask(0, 2, "value", at_least=5)
    assert pair.code() == "overloaded"
    pair.exchanges[1].heard(0, PartAsked(1, 1, part_of(5)))
    pair.exchanges[1].heard(0, PartAsked(1, 2, part_of(5)))
    pair.go_on(1)
    ((_, sent),) = pair.wire
    assert isinstance(sent.message, PartAnswered)
    assert sent.message.id == 2
    assert isinstance(sent.message.end, PartFailed)
    assert sent.message.end.code == "overloaded"


def test_a_worker_that_has_not_come_to_the_generation_or_has_not_the_slot() -> None:
    pair = Pair()
    pair.ask(0, 1, "value", generation=2)
    assert pair.code() == "unavailable"
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "value", slot=1)
    assert pair.code() == "unavailable"
    pair.idle()


def test_a_token_is_waited_for() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "value", at_least=1)
    assert not pair.answers
    written(pair, 1, 5, 6)
    pair.go_on(0)
    assert pair.result() == (1, 5)


# Fences -----------------------------------------------------------------------------------------------------


def test_an_idle_worker_begins_an_epoch_for_a_strict_read() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    assert pair.exchanges[0].epoch_wanted() is None
    pair.ask(0, 1, "value", fenced=True)
    assert not pair.answers
    wanted = pair.exchanges[0].epoch_wanted()
    assert wanted == EpochWanted(1, 1)
    pair.told.clear()
    pair.step(0, wanted)
    assert pair.exchanges[0].epoch_wanted() is None, "an epoch is wanted once"
    assert [type(each).__name__ for each in pair.told] == ["EpochStarted", "Done"], "the others are to join"
    pair.go_on(0)
    assert not pair.answers, "its record is not durable"
    pair.durable(0)
    pair.go_on(0)
    assert pair.result() == (0, 3)
    pair.idle()


def test_a_strict_read_waits_for_a_record_that_is_appended_after_the_question() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.join(1)
    assert pair.undurable[0]
    pair.ask(0, 1, "value", fenced=True)
    pair.durable(0)
    pair.go_on(0)
    assert not pair.answers, "that record was on its way before"
    pair.put(1, 7)
    pair.close(1)
    wanted = pair.exchanges[0].epoch_wanted()
    assert wanted == EpochWanted(1, 2)
    pair.step(0, wanted)
    pair.durable(0)
    pair.go_on(0)
    assert pair.result() == (1, 3)


def test_a_fence_of_a_generation_that_has_ended_is_asked_for_anew() -> None:
    pair = Pair()
    written(pair, 0, 3, 4)
    pair.ask(0, 1, "value", fenced=True)
    wanted = pair.exchanges[0].epoch_wanted()
    pair.step(0, wanted)
    old = pair.undurable[0]
    pair.begin(2)
    for record in old:
        pair.step(0, RecordDurable(record.generation, record.epoch))
    pair.go_on(0)
    assert not pair.answers
    wanted = pair.exchanges[0].epoch_wanted()
    assert wanted == EpochWanted(2, 0)
    pair.step(0, wanted)
    pair.durable(0)
    pair.go_on(0)
    assert pair.result() == (-1, 0)


def test_a_question_while_state_is_loaded_waits_for_its_fence() -> None:
    pair = Pair()
    pair.say(0, Recover(2, {0: 0, 1: 1}, None, {0: "a/1", 1: "b/1"}))
    pair.ask(0, 1, "value", fenced=True, generation=2)
    assert pair.exchanges[0].epoch_wanted() is None
    pair.step(0, StateLoaded(2, -1, 0, {0: LoadedSlot(SlotState(), 0, [])}, [], {}))
    pair.go_on(0)
    assert pair.exchanges[0].epoch_wanted() == EpochWanted(2, 0)

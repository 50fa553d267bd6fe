"""Who takes part in an epoch: fair turns, limits, parked transactions that hold new requests back without spinning."""

from __future__ import annotations

import msgspec

from styx.app import App
from styx.context import Context
from styx.limits import Limits
from styx.messages import Request, encode_request
from styx.operator import Operator
from styx.protocol import PendingTransaction
from styx.sequencer.epoch_record import EpochPlan
from styx.sequencer.sequencer import Arrival
from styx.worker.intake import Intake
from styx.worker.messages import ExternalDone, ExternalOutcome
from styx.worker.reply_memory import ReplyMemory
from styx.worker.slot import Slot

entity = Operator("entity", key_type=int, partition_key=lambda key: key)


@entity.register
async def touch(ctx: Context) -> None:
    await ctx.put(1)


app = App("intake", [entity])
OUTCOME = msgspec.msgpack.encode(ExternalOutcome(b"\x01"))


def key_in(slot: int, n_slots: int) -> int:
    return next(key for key in range(1000) if entity.partition_of(key, n_slots) == slot)


def arrivals(slot: int, n_slots: int, count: int, first: int = 0) -> list[Arrival]:
    key = key_in(slot, n_slots)
    payloads = [encode_request(Request(f"{slot}/{first + i}", "entity", key, "touch", b"\x90")) for i in range(count)]
    return [Arrival(first + i, 0, payload) for i, payload in enumerate(payloads)]


def intake(n_slots: int = 2, pending: list[PendingTransaction] | None = None, **limits: int) -> Intake:
    made = Intake(app, Limits(**limits), n_slots)
    for slot in range(n_slots):
        made.add_slot(slot, 0, (pending or []) if slot == 0 else [], ReplyMemory(Slot(slot), 10))
    return made


def parked(tid: int, n_slots: int = 2) -> PendingTransaction:
    payload = arrivals(0, n_slots, 1)[0].payload
    return PendingTransaction(tid, 0, 0, payload, True, True, None, [])


def test_tids_interleave_the_slots_and_offsets_move_on() -> None:
    made = intake()
    made.arrive(0, arrivals(0, 2, 2))
    made.arrive(1, arrivals(1, 2, 1))
    roots, batches = made.form(epoch=0, counter=5)
    assert [(root.slot, root.tid) for root in roots] == [(0, 11), (0, 13), (1, 12)]
    assert [(batch.slot, batch.first, batch.next, batch.count) for batch in batches] == [(0, 0, 2, 2), (1, 0, 1, 1)]


def test_an_epoch_is_bounded_and_slots_take_turns_at_the_room() -> None:
    made = intake(epoch_transactions_max=3)
    for slot in (0, 1):
        made.arrive(slot, arrivals(slot, 2, 10))
    counts = [[batch.count for batch in made.form(epoch, 0)[1]] for epoch in (0, 1)]
    assert counts == [[2, 1], [2, 1]]
    first_slots = [made.form(epoch, 0)[1][0].slot for epoch in (2, 3)]
    assert first_slots == [0, 1]


def test_a_replay_gives_the_same_transactions_the_same_tids() -> None:
    live, again = intake(), intake()
    live.arrive(0, arrivals(0, 2, 3))
    live.arrive(1, arrivals(1, 2, 2))
    roots, batches = live.form(epoch=0, counter=7)
    plan = EpochPlan(0, 7, {batch.slot: batch for batch in batches})
    again.arrive(0, arrivals(0, 2, 2))
    assert not again.can_replay(plan), "an offset that the record names is not there yet"
    again.arrive(0, arrivals(0, 2, 3))
    again.arrive(1, arrivals(1, 2, 5))
    assert again.can_replay(plan)
    replayed, _ = again.replay(plan)
    assert {root.tid: root.payload for root in replayed} == {root.tid: root.payload for root in roots}
    assert again.backlog == 3


def test_too_many_parked_transactions_hold_new_requests_back_without_an_epoch_spinning() -> None:
    made = intake(pending=[parked(1)], parked_max=1)
    resumed, _ = made.form(epoch=0, counter=1)  # what the snapshot held runs again …
    made.parked[1] = resumed[0]  # … and needs another outside call
    made.arrive(0, arrivals(0, 2, 4))
    assert not made.has_work
    made.arrive(1, arrivals(1, 2, 1))
    assert made.has_work
    _, batches = made.form(epoch=1, counter=2)
    assert {batch.slot: batch.count for batch in batches} == {0: 0, 1: 1}
    assert not made.has_work
    made.outcome(ExternalDone(1, 0, b"key", OUTCOME))
    assert made.has_work
    roots, _ = made.form(epoch=2, counter=3)
    assert next(root.tid for root in roots) == 1
    assert made.has_work, "the slot takes new requests again"


def test_a_parked_transaction_of_a_snapshot_is_resumed_in_the_first_new_epoch() -> None:
    made = intake(pending=[parked(1)])
    assert made.has_work
    roots, batches = made.form(epoch=4, counter=9)
    assert [root.tid for root in roots] == [1]
    assert batches[0].resumed[0].tid == 1
    assert batches[0].resumed[0].outcomes == {}


def test_an_outcome_that_is_known_already_resumes_nothing() -> None:
    made = intake(pending=[parked(1)])
    made.parked[1].externals = {b"key": OUTCOME}
    made._unstarted = set()
    made.outcome(ExternalDone(1, 0, b"key", OUTCOME))
    made.outcome(ExternalDone(99, 0, b"key", OUTCOME))
    assert not made.has_work


def test_garbage_costs_its_tid_only() -> None:
    made = intake()
    good = arrivals(0, 2, 1, first=1)[0]
    made.arrive(0, [Arrival(0, 0, b"\xc1 no request"), good])
    roots, batches = made.form(epoch=0, counter=0)
    assert [(root.tid, root.offset) for root in roots] == [(3, 1)]
    assert batches[0].count == 2
    assert [poison.offset for poison in made.poison] == [0]


def test_the_rest_of_a_slot_is_what_a_snapshot_needs() -> None:
    made = intake()
    made.arrive(0, arrivals(0, 2, 2))
    roots, _ = made.form(epoch=0, counter=0)
    made.carried.append(roots[0])
    made.parked[roots[1].tid] = roots[1]
    roots[1].repeats.append(("again", 77))
    next_offset, pending = made.rest(0)
    roots[1].repeats.append(("later", 78))
    assert next_offset == 2
    assert [(p.tid, p.parked, p.repeats) for p in pending] == [(1, False, []), (3, True, [("again", 77)])]
    assert made.rest(1) == (0, [])

"""The bounded memory for idempotency keys: first in, first out, and the same after a recovery."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from styx.messages import ReplyRecord, encode_reply
from styx.worker.reply_memory import ReplyMemory
from styx.worker.slot import IDEMPOTENCY_TABLE, Slot


def reply(tid: int, epoch: int = 0, phase: int = 1) -> ReplyRecord:
    return ReplyRecord(f"r{tid}", tid, tid, epoch, phase, b"\x01")


def keys(slot: Slot) -> list[bytes]:
    return list(slot.table(IDEMPOTENCY_TABLE))


def test_what_is_remembered_is_recalled() -> None:
    memory = ReplyMemory(Slot(0), 2)
    assert memory.recall(b"a") is None
    memory.remember(b"a", reply(1))
    assert memory.recall(b"a") == encode_reply(reply(1))


def test_the_oldest_is_forgotten_first() -> None:
    slot = Slot(0)
    memory = ReplyMemory(slot, 2)
    for tid, key in enumerate([b"a", b"b", b"c"], 1):
        memory.remember(key, reply(tid))
    assert keys(slot) == [b"b", b"c"]
    assert memory.recall(b"a") is None


def test_recalling_does_not_keep_a_reply() -> None:
    memory = ReplyMemory(Slot(0), 2)
    memory.remember(b"a", reply(1))
    memory.remember(b"b", reply(2))
    memory.recall(b"a")
    memory.remember(b"c", reply(3))
    assert memory.recall(b"a") is None, "recalls are not in the log: a replay would forget another one"


def test_forgetting_is_a_change_that_snapshots_hold() -> None:
    slot = Slot(0)
    memory = ReplyMemory(slot, 1)
    memory.remember(b"a", reply(1))
    slot.take_delta()
    memory.remember(b"b", reply(2))
    assert slot.delta == {IDEMPOTENCY_TABLE: {b"a": None, b"b": encode_reply(reply(2))}}


@given(st.randoms(use_true_random=False))
def test_after_a_reload_the_same_are_forgotten(rng: Random) -> None:
    slot = Slot(0)
    memory = ReplyMemory(slot, 5)
    places = sorted((rng.randrange(4), rng.randrange(3), tid) for tid in range(1, 9))
    for epoch, phase, tid in places:
        memory.remember(b"%d" % tid, reply(tid, epoch, phase))
    remembered = list(slot.table(IDEMPOTENCY_TABLE).items())
    rng.shuffle(remembered)
    again = Slot(0)
    again.load({IDEMPOTENCY_TABLE: dict(remembered)})
    reloaded = ReplyMemory(again, 5)
    assert keys(again) == keys(slot)
    assert again.delta == {}, "sorting is no change"
    for memory_of in (memory, reloaded):
        memory_of.remember(b"new", reply(99, 9))
    assert keys(again) == keys(slot)


def test_a_smaller_limit_after_a_restart_forgets_at_the_next_reply() -> None:
    slot = Slot(0)
    memory = ReplyMemory(slot, 5)
    for tid in range(1, 6):
        memory.remember(b"%d" % tid, reply(tid))
    ReplyMemory(slot, 2).remember(b"6", reply(6))
    assert keys(slot) == [b"5", b"6"]

"""The bounded memory for idempotency keys: first in, first out, and the same after a recovery."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from styx.messages import ReplyRecord, encode_reply
from styx.worker.reply_memory import ReplyMemory
from styx.worker.slot import IDEMPOTENCY_TABLE, Slot


def reply(tid: int, epoch: int = 0, phase: int = 1) -> ReplyRecord:
    return ReplyRecord(f"r{tid}", tid, tid, epoch, phase, b"\x01")


def keys(slot: Slot) -> list[bytes]:
    return list(slot.table(IDEMPOTENCY_TABLE))


def test_what_is_remembered_is_recalled() -> None:
    memory = ReplyMemory(Slot(0), 2, 10**9)
    assert memory.recall(b"a") is None
    memory.remember(b"a", reply(1))
    assert memory.recall(b"a") == encode_reply(reply(1))


def test_the_oldest_is_forgotten_first() -> None:
    slot = Slot(0)
    memory = ReplyMemory(slot, 2, 10**9)
    for tid, key in enumerate([b"a", b"b", b"c"], 1):
        memory.remember(key, reply(tid))
    assert keys(slot) == [b"b", b"c"]
    assert memory.recall(b"a") is None


def test_recalling_does_not_keep_a_reply() -> None:
    memory = ReplyMemory(Slot(0), 2, 10**9)
    memory.remember(b"a", reply(1))
    memory.remember(b"b", reply(2))
    memory.recall(b"a")
    memory.remember(b"c", reply(3))
    assert memory.recall(b"a") is None, "recalls are not in the log: a replay would forget another one"


def test_forgetting_is_a_change_that_snapshots_hold() -> None:
    slot = Slot(0)
    memory = ReplyMemory(slot, 1, 10**9)
    memory.remember(b"a", reply(1))
    slot.take_delta()
    memory.remember(b"b", reply(2))
    assert slot.delta == {IDEMPOTENCY_TABLE: {b"a": None, b"b": encode_reply(reply(2))}}


@given(st.randoms(use_true_random=False))
def test_after_a_reload_the_same_are_forgotten(rng: Random) -> None:
    slot = Slot(0)
    memory = ReplyMemory(slot, 5, 10**9)
    places = sorted((rng.randrange(4), rng.randrange(3), tid) for tid in range(1, 9))
    for epoch, phase, tid in places:
        memory.remember(b"%d" % tid, reply(tid, epoch, phase))
    remembered = list(slot.table(IDEMPOTENCY_TABLE).items())
    rng.shuffle(remembered)
    again = Slot(0)
    again.load({IDEMPOTENCY_TABLE: dict(remembered)})
    reloaded = ReplyMemory(again, 5, 10**9)
    assert keys(again) == keys(slot)
    assert again.delta == {}, "sorting is no change"
    for memory_of in (memory, reloaded):
        memory_of.remember(b"new", reply(99, 9))
    assert keys(again) == keys(slot)


def test_a_smaller_limit_after_a_restart_forgets_at_the_next_reply() -> None:
    slot = Slot(0)
    memory = ReplyMemory(slot, 5, 10**9)
    for tid in range(1, 6):
        memory.remember(b"%d" % tid, reply(tid))
    ReplyMemory(slot, 2, 10**9).remember(b"6", reply(6))
    assert keys(slot) == [b"5", b"6"]


def test_the_oldest_is_forgotten_first_for_its_bytes() -> None:
    slot = Slot(0)
    size = len(encode_reply(reply(1))) + 1
    memory = ReplyMemory(slot, 100, 3 * size)
    for number in range(1, 6):
        memory.remember(b"%d" % number, reply(number))
    assert [number for number in range(1, 6) if memory.recall(b"%d" % number)] == [3, 4, 5]
    large = replace(reply(6), result=bytes(10 * size))
    memory.remember(b"6", large)
    assert list(slot.table(IDEMPOTENCY_TABLE)) == [b"6"], "the last one is remembered, whatever it weighs"
    for number in (7, 8, 9):
        memory.remember(b"%d" % number, reply(number))
    assert list(slot.table(IDEMPOTENCY_TABLE)) == [b"7", b"8", b"9"]


def test_a_memory_that_was_loaded_counts_what_it_has() -> None:
    slot = Slot(0)
    size = len(encode_reply(reply(1))) + 1
    memory = ReplyMemory(slot, 100, 10 * size)
    for number in range(1, 6):
        memory.remember(b"%d" % number, reply(number))
    again = Slot(0)
    again.load({IDEMPOTENCY_TABLE: dict(reversed(slot.table(IDEMPOTENCY_TABLE).items()))})
    ReplyMemory(again, 100, 5 * size).remember(b"6", reply(6))
    assert list(again.table(IDEMPOTENCY_TABLE)) == [b"2", b"3", b"4", b"5", b"6"]

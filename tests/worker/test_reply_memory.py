"""The bounded memory for idempotency keys: first in, first out, and the same after a recovery."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from styx.messages import ReplyRecord, encode_reply
from styx.state.slot_state import IDEMPOTENCY_TABLE, SlotState
from styx.state.table import NEWEST, Table
from styx.worker.reply_memory import ReplyMemory


def reply(tid: int, epoch: int = 0, phase: int = 1) -> ReplyRecord:
    return ReplyRecord(f"r{tid}", tid, tid, epoch, phase, b"\x01")


def keys(memory: ReplyMemory) -> list[bytes]:
    """What it remembers, the oldest first, which is what the state has."""
    assert memory._table.at(NEWEST).keys() == set(memory.keys)
    return memory.keys


def test_what_is_remembered_is_recalled() -> None:
    memory = ReplyMemory(SlotState(), 2, 10**9)
    assert memory.recall(b"a") is None
    memory.remember(b"a", reply(1), 0)
    assert memory.recall(b"a") == encode_reply(reply(1))


def test_the_oldest_is_forgotten_first() -> None:
    memory = ReplyMemory(SlotState(), 2, 10**9)
    for tid, key in enumerate([b"a", b"b", b"c"], 1):
        memory.remember(key, reply(tid), 0)
    assert keys(memory) == [b"b", b"c"]
    assert memory.recall(b"a") is None


def test_recalling_does_not_keep_a_reply() -> None:
    memory = ReplyMemory(SlotState(), 2, 10**9)
    memory.remember(b"a", reply(1), 0)
    memory.remember(b"b", reply(2), 0)
    memory.recall(b"a")
    memory.remember(b"c", reply(3), 0)
    assert memory.recall(b"a") is None, "recalls are not in the log: a replay would forget another one"


def test_forgetting_is_a_change_that_snapshots_hold() -> None:
    state = SlotState()
    memory = ReplyMemory(state, 1, 10**9)
    memory.remember(b"a", reply(1), 0)
    state.take_delta()
    state.delta_stored()
    memory.remember(b"b", reply(2), 0)
    assert state.take_delta() == {IDEMPOTENCY_TABLE: {b"a": None, b"b": encode_reply(reply(2))}}


@given(st.randoms(use_true_random=False))
def test_after_a_reload_the_same_are_forgotten(rng: Random) -> None:
    state = SlotState()
    memory = ReplyMemory(state, 5, 10**9)
    places = sorted((rng.randrange(4), rng.randrange(3), tid) for tid in range(1, 9))
    for epoch, phase, tid in places:
        memory.remember(b"%d" % tid, reply(tid, epoch, phase), epoch)
    remembered = list(state.table(IDEMPOTENCY_TABLE).at(3).items())
    rng.shuffle(remembered)
    again = SlotState({IDEMPOTENCY_TABLE: Table(dict(remembered), 3)})
    reloaded = ReplyMemory(again, 5, 10**9)
    assert keys(reloaded) == keys(memory)
    assert again.take_delta() == {}, "sorting is no change"
    for memory_of in (memory, reloaded):
        memory_of.remember(b"new", reply(99, 9), 9)
    assert keys(reloaded) == keys(memory)


def test_a_smaller_limit_after_a_restart_forgets_at_the_next_reply() -> None:
    state = SlotState()
    memory = ReplyMemory(state, 5, 10**9)
    for tid in range(1, 6):
        memory.remember(b"%d" % tid, reply(tid), 0)
    smaller = ReplyMemory(state, 2, 10**9)
    smaller.remember(b"6", reply(6), 0)
    assert keys(smaller) == [b"5", b"6"]


def test_the_oldest_is_forgotten_first_for_its_bytes() -> None:
    state = SlotState()
    size = len(encode_reply(reply(1))) + 1
    memory = ReplyMemory(state, 100, 3 * size)
    for number in range(1, 6):
        memory.remember(b"%d" % number, reply(number), 0)
    assert [number for number in range(1, 6) if memory.recall(b"%d" % number)] == [3, 4, 5]
    large = replace(reply(6), result=bytes(10 * size))
    memory.remember(b"6", large, 0)
    assert keys(memory) == [b"6"], "the last one is remembered, whatever it weighs"
    for number in (7, 8, 9):
        memory.remember(b"%d" % number, reply(number), 0)
    assert keys(memory) == [b"7", b"8", b"9"]


def test_a_memory_that_was_loaded_counts_what_it_has() -> None:
    state = SlotState()
    size = len(encode_reply(reply(1))) + 1
    memory = ReplyMemory(state, 100, 10 * size)
    for number in range(1, 6):
        memory.remember(b"%d" % number, reply(number), 0)
    remembered = dict(list(state.table(IDEMPOTENCY_TABLE).at(0).items())[::-1])
    again = ReplyMemory(SlotState({IDEMPOTENCY_TABLE: Table(remembered, 0)}), 100, 5 * size)
    again.remember(b"6", reply(6), 0)
    assert keys(again) == [b"2", b"3", b"4", b"5", b"6"]

"""The state of a replica: complete epochs that nobody changes, equal to a dictionary that takes the same changes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from styx.replica.state import EpochState, ReplicaState, SlotChange, TooLarge

LARGE = 2**40
Plain = dict[int, dict[str, dict[Any, bytes]]]


def content(state: EpochState) -> Plain:
    return {
        slot: {name: dict(table.entries()) for name, table in tables.items()} for slot, tables in state.slots.items()
    }


def current(state: ReplicaState) -> EpochState:
    assert state.current is not None
    return state.current


def applied(before: Plain, changes: dict[int, SlotChange]) -> Plain:
    after = {slot: {name: dict(entries) for name, entries in tables.items()} for slot, tables in before.items()}
    for slot, change in changes.items():
        if change.whole:
            after[slot] = {}
        for name, entries in change.delta.items():
            table = after[slot].setdefault(name, {})
            for key, value in entries.items():
                table.pop(key, None)
                if value is not None:
                    table[key] = value
        after[slot] = {name: entries for name, entries in after[slot].items() if entries}
    return after


def some_changes(rng: Random, keys: int) -> dict[int, SlotChange]:
    return {
        slot: SlotChange(
            {
                name: {
                    rng.randrange(keys): None if rng.random() < 0.4 else rng.randbytes(rng.randrange(9))
                    for _ in range(rng.randrange(1, keys))
                }
                for name in rng.sample(("a", "a/b", "c"), rng.randrange(1, 3))
            },
            whole=rng.random() < 0.1,
        )
        for slot in rng.sample(range(4), rng.randrange(4))
    }


@pytest.mark.parametrize("seed", range(10))
def test_every_epoch_stays_as_it_was(seed: int) -> None:
    rng = Random(seed)
    keys = rng.choice((3, 50, 4_000))
    state = ReplicaState(LARGE)
    state.replace(0, 0, 0.0, {slot: {"a": {1: b"x"}} for slot in range(4)})
    expected: Plain = {slot: {"a": {1: b"x"}} for slot in range(4)}
    kept = [(current(state), expected)]
    for epoch in range(1, 40):
        changes = some_changes(rng, keys)
        state.apply(epoch, 0, float(epoch), changes)
        expected = applied(expected, changes)
        kept.append((current(state), expected))
    for epoch, (held, plain) in enumerate(kept):
        assert held.epoch == epoch
        assert content(held) == plain


@pytest.mark.parametrize("seed", range(5))
def test_its_bytes_are_those_of_its_entries(seed: int) -> None:
    rng = Random(seed)
    state, plain = ReplicaState(LARGE), ReplicaState(LARGE)
    state.replace(0, 0, 0.0, {slot: {} for slot in range(4)})
    for epoch in range(1, 30):
        state.apply(epoch, 0, 0.0, some_changes(rng, 20))
    plain.replace(0, 0, 0.0, {slot: dict(tables) for slot, tables in content(current(state)).items()})  # type: ignore[arg-type]
    assert current(state).bytes == current(plain).bytes > 0


def test_what_did_not_change_is_the_same_object() -> None:
    state = ReplicaState(LARGE)
    state.replace(1, 0, 0.0, {0: {"a": {1: b"x"}, "b": {1: b"x"}}, 1: {"a": {2: b"y"}}})
    before = current(state)
    state.apply(2, 0, 0.0, {0: SlotChange({"a": {1: b"z"}})})
    after = current(state)
    assert after.slots[1] is before.slots[1]
    assert after.slot_tables(0, ("b", "none")) == before.slot_tables(0, ("b", "none"))
    assert after.slot_tables(0, ("a",)) != before.slot_tables(0, ("a",))


def test_a_state_that_is_too_large_is_not_taken() -> None:
    state = ReplicaState(2_000)
    state.replace(1, 0, 0.0, {0: {"a": {1: b"x" * 100}}})
    with pytest.raises(TooLarge) as caught:
        state.apply(2, 0, 0.0, {0: SlotChange({"a": {2: b"x" * 3_000}})})
    assert caught.value.bytes > 3_000
    assert (current(state).epoch, content(current(state))) == (1, {0: {"a": {1: b"x" * 100}}})


def test_what_is_applied_must_follow() -> None:
    state = ReplicaState(LARGE)
    with pytest.raises(AssertionError, match="there is a state"):
        state.apply(1, 0, 0.0, {})
    state.replace(5, 0, 0.0, {0: {}})
    with pytest.raises(AssertionError, match="go back"):
        state.apply(4, 0, 0.0, {})
    with pytest.raises(AssertionError, match="stay the same"):
        state.apply(6, 0, 0.0, {1: SlotChange({})})

"""The state of a replica: complete epochs that nobody changes, equal to a dictionary that takes the same changes."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from styx.replica.state import EpochState, SlotChange, SlotTable, TooLarge, after, whole

LARGE = 2**40
Plain = dict[int, dict[str, dict[Any, bytes]]]


def content(state: EpochState) -> Plain:
    return {
        slot: {name: dict(table.entries()) for name, table in tables.items()} for slot, tables in state.slots.items()
    }


def first(
    contents: dict[int, dict[str, dict[Any, bytes | None]]], epoch: int = 0, bytes_max: int = LARGE
) -> EpochState:
    return whole(epoch, 0, 0.0, contents, bytes_max)


def later(state: EpochState, epoch: int, changes: dict[int, SlotChange], bytes_max: int = LARGE) -> EpochState:
    return after(state, epoch, 0, float(epoch), changes, bytes_max)


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
    state = first({slot: {"a": {1: b"x"}} for slot in range(4)})
    expected: Plain = {slot: {"a": {1: b"x"}} for slot in range(4)}
    kept = [(state, expected)]
    for epoch in range(1, 40):
        changes = some_changes(rng, keys)
        state = later(state, epoch, changes)
        expected = applied(expected, changes)
        kept.append((state, expected))
    for epoch, (held, plain) in enumerate(kept):
        assert held.epoch == epoch
        assert content(held) == plain


@pytest.mark.parametrize("seed", range(5))
def test_its_bytes_are_those_of_its_entries(seed: int) -> None:
    rng = Random(seed)
    state = first({slot: {} for slot in range(4)})
    for epoch in range(1, 30):
        state = later(state, epoch, some_changes(rng, 20))
    plain = first(
        {slot: {name: dict(each) for name, each in tables.items()} for slot, tables in content(state).items()}
    )
    assert state.bytes == plain.bytes > 0


def test_a_small_change_of_a_large_table_copies_little() -> None:
    table = SlotTable((dict.fromkeys(range(100_000), b"x"),), 0)
    for n in range(3_000):
        table = table.changed({n: b"y", 100_000 + n: b"z", 200_000 - n: None})
        assert len(table._layers) < 12
        assert len(table._layers[0]) == 100_000  # is not copied for so few
    assert sum(map(len, table._layers[1:])) <= 12_000
    assert len(table.entries()) == 103_000


def test_what_did_not_change_is_the_same_object() -> None:
    before = first({0: {"a": {1: b"x"}, "b": {1: b"x"}}, 1: {"a": {2: b"y"}}})
    found = later(before, 2, {0: SlotChange({"a": {1: b"z"}})})
    assert found.slots[1] is before.slots[1]
    assert found.slot_tables(0, ("b", "none")) == before.slot_tables(0, ("b", "none"))
    assert found.slot_tables(0, ("a",)) != before.slot_tables(0, ("a",))


def test_a_state_that_is_too_large_is_not_taken() -> None:
    state = first({0: {"a": {1: b"x" * 100}}}, bytes_max=2_000)
    with pytest.raises(TooLarge) as caught:
        later(state, 2, {0: SlotChange({"a": {2: b"x" * 3_000}})}, bytes_max=2_000)
    assert caught.value.bytes > 3_000
    with pytest.raises(TooLarge):
        first({0: {"a": {1: b"x" * 3_000}}}, bytes_max=2_000)


def test_what_is_applied_must_follow() -> None:
    state = first({0: {}}, epoch=5)
    with pytest.raises(AssertionError, match="go back"):
        later(state, 4, {})
    with pytest.raises(AssertionError, match="stay the same"):
        later(state, 6, {1: SlotChange({})})

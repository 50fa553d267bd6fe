"""The primary key's index: each entity's keys, in order, however they came."""

from __future__ import annotations

from random import Random

import pytest

from styx.relational.index_range import TOP, RowKey
from styx.state.entity_keys import EntityKeys


def keys_of(rows: list[RowKey], parts: int = 1) -> EntityKeys:
    keys = EntityKeys(parts)
    keys.load(rows)
    return keys


def test_loaded_keys_are_in_order_once_they_are_asked_for() -> None:
    keys = keys_of([("ada", 3), ("bob", 9), ("ada", 1), ("ada", 2)])
    assert list(keys.walk(("ada",))) == [("ada", 1), ("ada", 2), ("ada", 3)]
    assert list(keys.walk(("ada",), (2,), (3, TOP), True)) == [("ada", 3), ("ada", 2)]
    assert keys.count(("ada",), (), (3,)) == 2
    assert list(keys.walk(("eve",))) == []


def test_keys_of_several_parts() -> None:
    keys = keys_of([("nl", 1, 5, 2), ("nl", 1, 5, 1), ("nl", 2, 7, 7)], 2)
    assert list(keys.of(("nl", 1))) == [("nl", 1, 5, 1), ("nl", 1, 5, 2)]
    assert list(keys.walk(("nl", 1), (5, 2), (5, TOP))) == [("nl", 1, 5, 2)]


def test_rows_come_and_go_before_and_after_the_first_query() -> None:
    rng = Random(5)
    rows = {(entity, number) for entity in ("ada", "bob") for number in range(20)}
    keys = keys_of(list(rows))
    for step in range(400):
        key = (rng.choice(["ada", "bob", "eve"]), rng.randrange(40))
        if key in rows:
            rows.remove(key)
            keys.remove(key)
        else:
            rows.add(key)
            keys.add(key)
        if step == 100:
            assert list(keys.walk(("ada",))) == sorted(key for key in rows if key[0] == "ada")
        assert keys.same_as(keys_of(list(rows)))
        assert keys.length(("eve",)) == len([key for key in rows if key[0] == "eve"])


def test_a_row_that_is_missing_is_found() -> None:
    keys = keys_of([("ada", 3)])
    with pytest.raises(AssertionError, match="lacks a row"):
        keys.remove(("ada", 2))


def test_entities_with_many_rows_are_told() -> None:
    keys = keys_of([("ada", number) for number in range(5)] + [("bob", 1)])
    assert keys.large(5) == [("ada",)]
    assert keys.large(6) == []

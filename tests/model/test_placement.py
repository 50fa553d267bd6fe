"""Where keys go, looked at from outside: what differs by call, by process, or between declaration and state."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from styx import Operator
from styx.errors import ConfigurationError
from styx.model.partitioning import KeyType
from styx.model.placement import Misplaced, first_misplaced, misplaced, placement_digest, sample_keys

calls = itertools.count()


class Route:
    """No value that has a place."""


@pytest.mark.parametrize(
    "part_of",
    [
        lambda key: random.random(),
        lambda key: (id(key), 1),
        lambda key: id(object()) + next(calls),
        lambda key: time.perf_counter_ns(),
        lambda key: [len(key), next(calls)],
    ],
    ids=["random", "id", "id of another", "clock", "counter"],
)
def test_a_value_that_differs_by_call_is_refused_where_it_is_declared(part_of: Callable[[Any], Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"gives .* and then .* for the same key 'alice'"):
        Operator("a", partition_key=part_of)


@pytest.mark.parametrize("value", [object(), Route(), ("k", 1j), 2**70], ids=["object", "class", "complex", "long"])
def test_a_value_that_has_no_place_is_refused_where_it_is_declared(value: object) -> None:
    with pytest.raises(ConfigurationError, match=r"operator 'a': partition_key gives .* must give a str, an int or a"):
        Operator("a", partition_key=lambda key: value)


@pytest.mark.parametrize("part_of", [lambda: 1, lambda key, more: key], ids=["none", "two"])
def test_a_partition_key_that_takes_no_key_is_refused(part_of: Any) -> None:
    with pytest.raises(ConfigurationError, match="operator 'a': partition_key gets one key"):
        Operator("a", partition_key=part_of)


@pytest.mark.parametrize(
    "part_of",
    [str.upper, len, lambda key, more=1: key, lambda *keys: keys[0]],
    ids=["method", "builtin", "default", "any number"],
)
def test_a_partition_key_that_takes_one_key_is_fine(part_of: Any) -> None:
    assert Operator("a", partition_key=part_of).slot_of("b", 4) < 4


@pytest.mark.parametrize("key_type", [str, int, (int, str), (str, str, int)])
def test_samples_are_keys(key_type: Any) -> None:
    declared = KeyType(key_type)
    keys = sample_keys(declared)
    assert keys == sample_keys(declared)
    assert len(set(keys)) == len(keys) >= 8
    assert [declared.check(key, "a") for key in keys] == keys


@pytest.mark.parametrize(
    "part_of",
    [
        lambda key: key,
        lambda key: key[0],
        lambda key: None,
        lambda key: 1.5,
        lambda key: {"of": key},
        lambda key: key.split(":")[1],
        lambda key: {"al": 1}[key],
    ],
    ids=["key", "part", "none", "float", "map", "fails for some", "fails for all"],
)
def test_what_depends_on_the_key_alone_is_taken(part_of: Callable[[Any], Any]) -> None:
    operator = Operator("a", partition_key=part_of)
    digest = placement_digest(operator.key_type, part_of)
    assert digest == placement_digest(operator.key_type, part_of) != ""


def test_the_order_of_a_set_decides_nothing() -> None:
    """A set's order differs by process; here, by how it was made."""
    ways = itertools.cycle([set, lambda words: {*words[::-1], "x"}])
    operator = Operator("a", partition_key=lambda key: next(ways)(["x", *key, *(chr(n) for n in range(40, 90))]))
    assert {operator.partition_of("some key", 97) for _ in range(10)} == {operator.partition_of("some key", 97)}


def test_the_digest_tells_one_way_from_another() -> None:
    key_type = KeyType(str)
    ways: list[Callable[[Any], Any] | None] = [None, lambda key: key, lambda key: key[:1], len]
    assert len({placement_digest(key_type, way) for way in ways}) == len(ways)


def test_one_key_of_thousands_that_is_elsewhere() -> None:
    operator = Operator("a")
    keys = [key for key in map(str, range(60_000)) if operator.slot_of(key, 4) == 2]
    assert misplaced(operator, 2, keys, 4) is None
    lost = next(key for key in map(str, range(60_000, 70_000)) if operator.slot_of(key, 4) == 3)
    keys.insert(len(keys) - 5, lost)
    found = misplaced(operator, 2, keys, 4)
    assert found == Misplaced("a", lost, 2, 3)
    assert str(found) == f"operator 'a': '{lost}' is stored in slot 2 and would be looked for in slot 3"


def test_what_is_no_key_of_the_operator() -> None:
    found = misplaced(Operator("a", key_type=int), 1, ["k"], 4)
    assert found == Misplaced("a", "k", 1, None)
    assert "cannot be looked for at all" in str(found)
    failing = Operator("a", partition_key=lambda key: {"al": 1}[key])
    assert misplaced(failing, 1, ["k"], 4) == Misplaced("a", "k", 1, None)


def test_tables_of_operators_that_are_not_there_are_passed_over() -> None:
    operator = Operator("a")
    slot = operator.slot_of("k", 4)
    tables: dict[int, dict[str, dict[Any, bytes]]] = {slot: {"a": {"k": b""}, "gone": {1: b""}}}
    assert first_misplaced({"a": operator}, tables, 4) is None
    assert first_misplaced({"a": operator}, {(slot + 1) % 4: tables[slot]}, 4) == Misplaced(
        "a", "k", (slot + 1) % 4, slot
    )

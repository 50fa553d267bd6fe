"""The order of a table's keys: made in pieces, kept up meanwhile and afterwards, and given up when nobody reads it."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any

import pytest

from styx.state.key_order import BUCKET_MAX, UNREAD_MIN, KeyOrder


def made(keys: Any, step: int = 1_000) -> KeyOrder:
    order = KeyOrder(keys)
    while not order.go_on(step):
        pass
    return order


@pytest.mark.parametrize("size", [0, 1, 255, 257, 5_000, 40_000])
@pytest.mark.parametrize("shape", ["numbers", "texts", "tuples", "sorted", "alike"])
def test_it_gives_all_keys_in_order_from_any_place(size: int, shape: str) -> None:
    rng = Random(size)
    numbers = rng.sample(range(10 * size + 1), size)
    shapes: dict[str, list[Any]] = {
        "numbers": numbers,
        "texts": [f"é{number}" for number in numbers],
        "tuples": [(f"a{number % 7}", number) for number in numbers],
        "sorted": sorted(numbers),
        "alike": ["same beginning " * 5 + str(number) for number in numbers],
    }
    keys = shapes[shape]
    order = made(keys)
    wanted = sorted(keys)
    assert list(order.walk()) == wanted
    for key in rng.sample(keys, min(size, 20)):
        assert list(islice(order.walk(key), 30)) == wanted[wanted.index(key) :][:30]


def test_it_is_made_in_pieces_and_what_comes_and_goes_meanwhile_is_in_it() -> None:
    rng = Random(5)
    there = set(range(0, 30_000, 2))
    order = KeyOrder(list(there))
    steps = 0
    while not order.go_on(500):
        steps += 1
        for _ in range(100):
            key = rng.randrange(30_000)
            (order.remove if key in there else order.add)(key)
            there ^= {key}
    assert steps >= 15_000 // 500
    assert list(order.walk()) == sorted(there)


def test_a_key_that_goes_and_comes_again_while_it_is_made_is_there_once() -> None:
    order = KeyOrder(range(1_000))
    assert not order.go_on(10)
    for key in (3, 900):
        order.remove(key)
        order.add(key)
    while not order.go_on(10):
        pass
    assert list(order.walk()) == list(range(1_000))


def test_keys_come_and_go_behind_it_and_buckets_divide_and_vanish() -> None:
    rng, order = Random(7), made(())
    there: set[int] = set()
    for wanted in (5 * BUCKET_MAX, 20, 3 * BUCKET_MAX, 0, 5):
        while len(there) != wanted:
            key = rng.randrange(50_000)
            if (key in there) == (len(there) > wanted):
                (order.remove if key in there else order.add)(key)
                there ^= {key}
        assert list(order.walk()) == sorted(there)


def test_a_queue_leaves_no_empty_buckets_behind() -> None:
    order = made(())
    for number in range(20 * BUCKET_MAX):
        order.add(number)
        if number >= 100:
            order.remove(number - 100)
    assert len(order._buckets) <= 3


def test_a_walk_sorts_only_the_buckets_that_it_reads() -> None:
    order = made(Random(1).sample(range(100_000), 100_000))
    assert list(islice(order.walk(50_000), 10)) == list(range(50_000, 50_010))
    assert sum(order._sorted) <= 2


def test_it_is_unread_when_as_many_keys_as_it_has_have_come_or_gone_since_the_last_walk() -> None:
    order = made(range(2 * UNREAD_MIN))
    for number in range(2 * UNREAD_MIN, 4 * UNREAD_MIN):
        order.add(number)
    assert not order.unread
    assert next(order.walk()) == 0
    for number in range(4 * UNREAD_MIN + 10):
        (order.remove if number % 2 else order.add)(10**9)
    assert order.unread
    assert next(order.walk()) == 0
    assert not order.unread

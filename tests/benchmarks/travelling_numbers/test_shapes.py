"""The requests of travelling numbers: on other slots than the counter, and the same for the same seed."""

from __future__ import annotations

import pytest

from benchmarks.travelling_numbers import serial
from benchmarks.travelling_numbers.app import ledger, price, stage
from benchmarks.travelling_numbers.shapes import SHAPES, SLOTS_MIN


@pytest.mark.parametrize("n_slots", [SLOTS_MIN, 4, 16])
def test_every_number_leaves_its_slot(n_slots: int) -> None:
    for name, operator in (("as_argument", ledger), ("for_a_result", price)):
        shape = SHAPES[name]
        drawn = shape.requests(100, n_slots, seed=1)
        assert len(set(drawn)) > 1
        assert shape.slot(n_slots) not in {operator.slot_of(key, n_slots) for (key,) in drawn}
    shape = SHAPES["along_a_chain"]
    for first, second in shape.requests(100, n_slots, seed=1):
        assert len({shape.slot(n_slots), stage.slot_of(first, n_slots), stage.slot_of(second, n_slots)}) == 3


def test_a_seed_names_the_requests() -> None:
    for shape in SHAPES.values():
        assert shape.requests(50, 4, seed=1) == shape.requests(50, 4, seed=1)
    assert SHAPES["as_argument"].requests(50, 4, seed=1) != SHAPES["as_argument"].requests(50, 4, seed=2)


def test_the_serial_execution_by_hand() -> None:
    assert serial.run("as_argument", [("a",), ("b",), ("a",)]) == (
        [1, 2, 3],
        {("counter", "as_argument"): 3, ("ledger", "a"): 34, ("ledger", "b"): 2},
    )
    assert serial.run("as_key", [(), ()]) == (
        [1, 2],
        {("counter", "as_key"): 2, ("invoice", 1): 1, ("invoice", 2): 1},
    )
    assert serial.run("for_a_result", [("a",), ("a",)]) == (
        [[1, 1], [2, 33]],
        {("price", "a"): 33, ("counter", "for_a_result"): [2, 34]},
    )
    assert serial.run("along_a_chain", [("a", "b"), ("b", "a")]) == (
        [1, 2],
        {("counter", "along_a_chain"): 2, ("stage", "a"): 64, ("stage", "b"): 33},
    )

"""The four ways in which a number travels: each one's requests, and the keys on other slots that they name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any, Final, NamedTuple

from benchmarks.travelling_numbers.app import counter, ledger, price, stage
from styx.model.operator import Operator

TARGETS: Final = 8
"""The entities that a shape's numbers go to, or the pairs of them; invoices are one for each number."""
SLOTS_MIN: Final = 3
"""A chain needs three different slots."""

Arguments = tuple[Any, ...]


class Shape(NamedTuple):
    """`name` is the counter's function and its key. `draw` gives the arguments of one request after the other."""

    name: str
    title: str
    draw: Callable[[Random, int], Callable[[], Arguments]]

    def requests(self, number: int, n_slots: int, seed: int) -> list[Arguments]:
        """The arguments of `number` requests. The same arguments give the same requests."""
        draw = self.draw(Random(f"{self.name} {seed}"), n_slots)
        return [draw() for _ in range(number)]

    def slot(self, n_slots: int) -> int:
        """The counter's slot."""
        return counter.slot_of(self.name, n_slots)


def elsewhere(operator: Operator, without: set[int], n_slots: int, number: int) -> list[str]:
    """Keys of entities on slots that are not in `without`."""
    found: list[str] = []
    for each in count():
        key = f"{operator.name}-{each}"
        if operator.slot_of(key, n_slots) not in without:
            found.append(key)
        if len(found) == number:
            break
    return found


def _one(shape: str, operator: Operator) -> Callable[[Random, int], Callable[[], Arguments]]:
    def draw(rng: Random, n_slots: int) -> Callable[[], Arguments]:
        keys = elsewhere(operator, {counter.slot_of(shape, n_slots)}, n_slots, TARGETS)
        return lambda: (rng.choice(keys),)

    return draw


def _none(rng: Random, n_slots: int) -> Callable[[], Arguments]:
    return lambda: ()


def _chain(rng: Random, n_slots: int) -> Callable[[], Arguments]:
    own = counter.slot_of("along_a_chain", n_slots)
    pairs = []
    for first in elsewhere(stage, {own}, n_slots, TARGETS):
        without = {own, stage.slot_of(first, n_slots)}
        pairs.append((first, rng.choice(elsewhere(stage, without, n_slots, TARGETS))))
    return lambda: rng.choice(pairs)


SHAPES: Final = {
    shape.name: shape
    for shape in (
        Shape("as_argument", "an argument of a call to another slot", _one("as_argument", ledger)),
        Shape("as_key", "the key of a call", _none),
        Shape("for_a_result", "for a result from another slot", _one("for_a_result", price)),
        Shape("along_a_chain", "a chain over three slots", _chain),
    )
}

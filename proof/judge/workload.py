"""Random transactions of all kinds over a few keys at a time, from one seed.

`list-append` reads and appends to lists, whose content shows the order of all appends. `rw-register` reads and blindly
overwrites registers. Every value is written once, so a read identifies the transaction that wrote its value. Both take
numbers of sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Any, Final, Literal, NamedTuple

from proof.judge.app import neighbours
from proof.judge.operation import CARRIED, UNIQUE_ID, Operation

Model = Literal["list-append", "rw-register"]
MODELS: Final[tuple[Model, ...]] = ("list-append", "rw-register")
Function = Literal["transact", "look", "near", "read"]

OPERATIONS_MAX: Final = 4
"""Limit on a transaction's operations one after the other. One whose numbers travel has up to twice as many."""
LAST_MAX: Final = 2
"""Limit on the parallel writes at a transaction's end."""
CANDIDATES: Final = 3
"""The number of entities among which the number that is carried decides."""
TRANSACTIONS_PER_KEY: Final = 25
"""After this number of transactions a new key replaces the oldest one, so that lists stay short."""
FAILS: Final = 0.05
"""Share of transactions that raise at their end."""
COUNTERS: Final = 3
"""The entities, of those in use, whose numbers most often travel."""
STRAYS: Final = 0.05
"""Share of a local transaction's operations that may be on another slot."""


class Transaction(NamedTuple):
    """A request for a `function` of `proof.judge.app`, with its arguments. `root` is the number of the entity that gets
    it. `read` is the engine's own read of `root`, its only operation.
    """

    root: int
    shape: Literal["star", "chain"]
    operations: list[Operation]
    last: list[Operation]
    fails: bool
    function: Function = "transact"


class Workload:
    """An endless supply of transactions over `keys` entities at a time, whose numbers begin with `first`.

    Two workloads on one deployment must have separate numbers. Each uses a new entity every `TRANSACTIONS_PER_KEY`
    transactions.
    """

    def __init__(self, model: Model, keys: int, seed: int, first: int = 0) -> None:
        self.model: Final = model
        self._write = "append" if model == "list-append" else "w"
        self._keys = keys
        self._first = first
        self._rng = Random(seed)
        self._values = count(CARRIED, CARRIED)
        self._drawn = count()
        self._draws: dict[Callable[[range], Transaction], int] = {
            self._ordinary: 30,
            self._travelling: 20,
            self._near: 25,
            self._look: 15,
            self._read: 10,
        }

    def draw(self) -> Transaction:
        """The next transaction."""
        first = self._first + next(self._drawn) // TRANSACTIONS_PER_KEY
        numbers = range(first, first + self._keys)
        (draw,) = self._rng.choices(list(self._draws), list(self._draws.values()))
        return draw(numbers)

    def _ordinary(self, numbers: range) -> Transaction:
        operations = [self._operation(numbers) for _ in range(self._rng.randint(1, OPERATIONS_MAX))]
        return self._transaction(self._rng.choice(numbers), operations, self._writes_at_the_end(numbers))

    def _travelling(self, numbers: range) -> Transaction:
        """The number of a counter goes to other entities: as the key, as an argument, or by way of the root."""
        rng = self._rng
        counter = rng.choice(numbers[:COUNTERS])
        root = rng.choice([counter, counter, *numbers])
        operations: list[Operation] = [[rng.choice(["next", "next", "r"]), [counter], None]]
        for _ in range(rng.randint(1, OPERATIONS_MAX - 1)):
            operations.append([self._write, self._chosen(numbers, CANDIDATES), [next(self._values)]])
            if rng.random() < 0.3:
                operations.append([rng.choice(["next", "r"]), self._chosen(numbers, CANDIDATES), None])
        if rng.random() < 0.3:
            operations.append([self._write, [root], [next(self._values)]])
        return self._transaction(root, operations, self._writes_at_the_end(numbers))

    def _near(self, numbers: range) -> Transaction:
        rng = self._rng
        root = max((rng.choice(numbers) for _ in range(2)), key=lambda n: len(neighbours(n, numbers)))
        close = neighbours(root, numbers)
        operations = [self._operation(self._place(close, numbers)) for _ in range(rng.randint(1, OPERATIONS_MAX))]
        return self._transaction(root, operations, self._writes_at_the_end(close), "near")

    def _look(self, numbers: range) -> Transaction:
        rng = self._rng
        operations: list[Operation] = [
            [rng.choice(["r", "r", "r", "last"]), self._chosen(numbers, rng.choice([1, 1, CANDIDATES])), None]
            for _ in range(rng.randint(1, OPERATIONS_MAX))
        ]
        return self._transaction(rng.choice(numbers), operations, [], "look")

    def _read(self, numbers: range) -> Transaction:
        root = self._rng.choice(numbers)
        return Transaction(root, "star", [["r", [root], None]], [], fails=False, function="read")

    # Parts -----------------------------------------------------------------------------------------------------

    def _transaction(
        self, root: int, operations: list[Operation], last: list[Operation], function: Function = "transact"
    ) -> Transaction:
        rng = self._rng
        return Transaction(root, rng.choice(("star", "chain")), operations, last, rng.random() < FAILS, function)

    def _operation(self, numbers: Sequence[int]) -> Operation:
        rng = self._rng
        (kind,) = rng.choices(("r", "last", "next", self._write), (40, 5, 10, 45))
        chosen = self._chosen(numbers, rng.choice([1, 1, CANDIDATES]))
        return [kind, chosen, self._value() if kind == self._write else None]

    def _writes_at_the_end(self, numbers: Sequence[int]) -> list[Operation]:
        writes = range(max(0, self._rng.randint(-1, LAST_MAX)))
        return [[self._write, self._chosen(numbers, self._rng.choice([1, CANDIDATES])), self._value()] for _ in writes]

    def _value(self) -> Any:
        value = next(self._values)
        return self._rng.choice([value, value, [value], UNIQUE_ID])

    def _chosen(self, numbers: Sequence[int], candidates: int) -> list[int]:
        return self._rng.choices(numbers, k=candidates)

    def _place(self, close: Sequence[int], numbers: Sequence[int]) -> Sequence[int]:
        return numbers if self._rng.random() < STRAYS else close

"""Random transactions over a few keys at a time, from one seed.

`list-append` reads and appends to lists, whose content shows the order of all appends. `rw-register` reads and blindly
overwrites registers. Every value is written once, so a read identifies the transaction that wrote its value.
"""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Final, Literal, NamedTuple

from proof.judge.app import Operation

Model = Literal["list-append", "rw-register"]
MODELS: Final[tuple[Model, ...]] = ("list-append", "rw-register")

OPERATIONS_MAX: Final = 4
"""Limit on a transaction's operations one after the other."""
LAST_MAX: Final = 2
"""Limit on the parallel writes at a transaction's end."""
CANDIDATES: Final = 3
"""The number of entities among which the last value read decides."""
TRANSACTIONS_PER_KEY: Final = 25
"""After this number of transactions a new key replaces the oldest one, so that lists stay short."""


READS: Final = 0.1
"""Share of transactions that are the engine's own read of one entity."""


class Transaction(NamedTuple):
    """The arguments of `proof.judge.app.transact`. `root` is the number of the entity that gets the request.

    A transaction of the shape `read` is the engine's own read of `root`, its only operation.
    """

    root: int
    shape: Literal["star", "chain", "read"]
    operations: list[Operation]
    last: list[Operation]
    fails: bool


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
        self._reads = Random(f"reads {seed}")
        self._values = count(1)
        self._drawn = count()

    def draw(self) -> Transaction:
        """The next transaction."""
        rng, reads = self._rng, self._reads
        first = self._first + next(self._drawn) // TRANSACTIONS_PER_KEY
        numbers = range(first, first + self._keys)
        if reads.random() < READS:
            root = reads.choice(numbers)
            return Transaction(root, "read", [["r", [root], None]], [], fails=False)
        return Transaction(
            root=rng.choice(numbers),
            shape=rng.choice(("star", "chain")),
            operations=[self._operation(numbers, rng.random() < 0.5) for _ in range(rng.randint(1, OPERATIONS_MAX))],
            last=[self._operation(numbers, False) for _ in range(max(0, rng.randint(-1, LAST_MAX)))],
            fails=rng.random() < 0.05,
        )

    def _operation(self, numbers: range, reads: bool) -> Operation:
        candidates = CANDIDATES if self._rng.random() < 0.3 else 1
        chosen = self._rng.choices(numbers, k=candidates)
        return ["r", chosen, None] if reads else [self._write, chosen, next(self._values)]

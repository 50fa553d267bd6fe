"""Random transactions on shelves, from one seed, and what a transaction that is done tells: the steps of a history.

An operation is [kind, shelf, *arguments]. Queries are

    "select" / "keys" / "count" / "exists"    conditions, limit

which see one shelf, and

    "books_in_hall" / "keys_in_hall"    hall

which see all shelves of a hall by a partition-wide index. The others are

    "insert"    row                     insert it
    "guard"     topic, books_max, row   insert it if the topic has fewer books; its rank is their number
    "move"      id, row                 give a row other values, if it is there
    "delete"    id, stamp               delete a row, if it is there
    "purge"     conditions, limit, stamp    delete what a query finds
    "echo"      conditions, row         insert it, with the stamps of what a query finds
    "relay"     operation               have it done by a branch of this branch

Branches are inserts, echoes, and moves of a row that the transaction itself has inserted, all of which surely write,
and relays of those: so what is earlier in the serial order may come later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Any, Final, Literal, NamedTuple

from proof.judge.rows.query import ID, RANK, STAMP, Conditions, Row
from proof.judge.rows.shelf import ACROSS, QUERIES, SHELVES_PER_HALL, Operation

Function = Literal["transact", "look", "near"]
Step = list[Any]
"""["query", shelf, kind, conditions, limit, result], ["write", shelf, id, stamp replaced or None, new stamp, row or
None if it was deleted], or ["echo", shelf, conditions, row].
"""

TOPICS: Final = 3
KINDS: Final = 2
RANKS: Final = 8
OPERATIONS_MAX: Final = 4
BRANCHES_MAX: Final = 3
BOOKS_MAX: Final = 6
"""Limit on a topic's books, by which a `guard` inserts or does not."""
TRANSACTIONS_PER_SHELF: Final = 25
"""After this number of transactions a new shelf replaces the oldest one, so that shelves stay small."""
STAYS: Final = 0.4
"""Share of the moves that leave a row where it was, if no other move came between."""
CROWDED: Final = 2
"""Shelves into which books are inserted by transactions that read a group: few, so that they meet."""
ACROSS_SHELVES: Final = 0.15
"""Share of the transactions on any shelves that ask for all books of a hall."""
RELAYED: Final = 0.3
"""Share of the branches that are relayed."""
KNOWN_BOOKS: Final = 8
"""Books of a shelf that may be moved or deleted: those that were inserted last."""
FAILS: Final = 0.05
NO_BOOK: Final[Row] = [0, 0, 0, 0, 0, ""]
"""Stands for a book of a shelf that has none: it is never there."""


class Transaction(NamedTuple):
    """A request to the shelf `root` for a `function` of `proof.judge.rows.shelf`, with its arguments."""

    root: int
    operations: list[Operation]
    branches: list[Operation]
    fails: bool = False
    function: Function = "transact"


class RowsWorkload:
    """An endless supply of transactions over `shelves` shelves at a time, whose numbers begin with `first`."""

    model: Final = "rows"

    def __init__(self, shelves: int, seed: int, first: int = 0) -> None:
        self._shelves = shelves
        self._first = first
        self._rng = Random(seed)
        self._numbers = count(1)
        self._drawn = count()
        self._books: dict[int, deque[Row]] = {}
        self._draws: dict[Callable[[range], Transaction], int] = {
            self._ordinary: 35,
            self._predicate: 15,
            self._branching: 20,
            self._near: 15,
            self._look: 15,
        }

    def draw(self) -> Transaction:
        """The next transaction."""
        first = self._first + next(self._drawn) // TRANSACTIONS_PER_SHELF
        shelves = range(first, first + self._shelves)
        (draw,) = self._rng.choices(list(self._draws), list(self._draws.values()))
        return draw(shelves)

    def _ordinary(self, shelves: range) -> Transaction:
        drawn = self._transaction(self._rng.choice(shelves), shelves, [])
        if self._rng.random() < ACROSS_SHELVES:
            drawn.operations.insert(self._rng.randint(0, len(drawn.operations)), self._across(shelves))
        return drawn

    def _predicate(self, shelves: range) -> Transaction:
        """Inserts one book and reads all of a group, a topic or a hall. Of two that each insert into the group which
        the other one reads, one must see the book of the other.
        """
        rng = self._rng
        at, asked = rng.choices(shelves[:CROWDED], k=2)
        operations: list[Operation] = [["insert", at, self._row(at)]]
        group = ["select", asked, {"topic": rng.randrange(TOPICS)}, 0]
        operations.insert(rng.randint(0, 1), self._across(shelves) if rng.random() < ACROSS_SHELVES else group)
        return Transaction(rng.choice([at, asked]), operations, [])

    def _branching(self, shelves: range) -> Transaction:
        """Its branches meet each other, and the rows of the transaction itself, on one shelf or two."""
        rng = self._rng
        some = rng.choices(shelves, k=2)
        root = rng.choice([*some, rng.choice(shelves)])
        operations: list[Operation] = [["insert", each, self._row(each)] for each in some[: rng.randint(0, 2)]]
        branches = [self._branch(rng.choice(some)) for _ in range(rng.randint(2, BRANCHES_MAX))]
        for _, shelf, row in operations:
            if rng.random() < 0.5:
                branches.insert(rng.randint(0, len(branches)), ["move", shelf, row[ID], self._moved(row)])
        branches = [["relay", rng.choice(shelves), each] if rng.random() < RELAYED else each for each in branches]
        return Transaction(root, operations, branches, rng.random() < FAILS)

    def _near(self, shelves: range) -> Transaction:
        root = self._rng.choice(shelves)
        branches = [self._branch(root) for _ in range(max(0, self._rng.randint(-2, 2)))]
        return self._transaction(root, [root], branches)._replace(function="near")

    def _look(self, shelves: range) -> Transaction:
        rng = self._rng
        operations = [self._query(rng.choice(shelves)) for _ in range(rng.randint(1, OPERATIONS_MAX))]
        if rng.random() < ACROSS_SHELVES:
            operations.append(self._across(shelves))
        return Transaction(rng.choice(shelves), operations, [], rng.random() < FAILS, "look")

    # Parts -----------------------------------------------------------------------------------------------------

    def _transaction(self, root: int, shelves: Sequence[int], branches: list[Operation]) -> Transaction:
        rng = self._rng
        operations = [self._operation(rng.choice(shelves)) for _ in range(rng.randint(1, OPERATIONS_MAX))]
        return Transaction(root, operations, branches, rng.random() < FAILS)

    def _operation(self, shelf: int) -> Operation:
        rng = self._rng
        kinds = ("query", "insert", "guard", "move", "delete", "purge")
        (kind,) = rng.choices(kinds, (40, 20, 12, 14, 8, 3))
        book = rng.choice(self._books.get(shelf) or [NO_BOOK])
        if kind == "query":
            return self._query(shelf)
        if kind == "insert":
            return ["insert", shelf, self._row(shelf)]
        if kind == "guard":
            row = self._row(shelf)
            return ["guard", shelf, row[1], rng.randint(1, BOOKS_MAX), row]
        if kind == "move":
            return ["move", shelf, book[ID], self._moved(book)]
        if kind == "delete":
            return ["delete", shelf, book[ID], next(self._numbers)]
        conditions, limit = self._conditions(), rng.choice([0, 1, -1])
        return ["purge", shelf, conditions, limit, next(self._numbers)]

    def _branch(self, shelf: int) -> Operation:
        if self._rng.random() < 0.5:
            return ["insert", shelf, self._row(shelf)]
        return ["echo", shelf, self._conditions(), self._row(shelf)]

    def _query(self, shelf: int) -> Operation:
        rng = self._rng
        (kind,) = rng.choices(("select", "keys", "count", "exists"), (60, 15, 15, 10))
        conditions = self._conditions()
        limit = rng.choice([0, 0, 1, -1, 2, -2]) if kind == "select" else 0
        return [kind, shelf, conditions, limit]

    def _across(self, shelves: range) -> Operation:
        return [self._rng.choice(ACROSS), None, self._rng.choice(shelves) // SHELVES_PER_HALL]

    def _conditions(self) -> Conditions:
        rng = self._rng
        ranks = sorted(rng.choices(range(RANKS), k=2))
        newest = next(self._numbers)
        choices: list[Conditions] = [
            {},
            {"id": [newest - rng.randint(1, 100), newest]},
            {"topic": rng.randrange(TOPICS)},
            {"topic": rng.randrange(TOPICS), "rank": ranks},
            {"kind": rng.randrange(KINDS)},
            {"rank": ranks},
        ]
        return rng.choices(choices, (15, 15, 30, 15, 15, 10))[0]

    def _row(self, shelf: int) -> Row:
        """A new book."""
        row = self._version(next(self._numbers))
        self._books.setdefault(shelf, deque(maxlen=KNOWN_BOOKS)).append(row)
        return row

    def _moved(self, row: Row) -> Row:
        if self._rng.random() < STAYS:
            return [*row[:STAMP], next(self._numbers), ""]
        return self._version(row[ID])

    def _version(self, id: int) -> Row:
        rng = self._rng
        return [id, rng.randrange(TOPICS), rng.randrange(KINDS), rng.randrange(RANKS), next(self._numbers), ""]


def steps_of(transaction: Transaction, done: Sequence[Any]) -> list[Step]:
    """What a transaction has done, in the form of a history; `done` is what its operations saw."""
    steps: list[Step] = []
    for (kind, shelf, *arguments), saw in zip(transaction.operations, done, strict=True):
        steps += _steps(kind, shelf, arguments, saw)
    stamps = {row[ID]: row[STAMP] for kind, _, *rest in transaction.operations if kind == "insert" for row in rest}
    for kind, shelf, *arguments in map(relayed, transaction.branches):
        if kind == "echo":
            steps.append(["echo", shelf, *arguments])
        else:
            row = arguments[-1]
            steps.append(["write", shelf, row[ID], stamps.get(row[ID]), row[STAMP], row])
    return steps


def relayed(branch: Operation) -> Operation:
    """The operation that is done in the end."""
    return relayed(branch[2]) if branch[0] == "relay" else branch


def _steps(kind: str, shelf: int, arguments: list[Any], saw: Any) -> list[Step]:
    if kind in QUERIES:
        return [["query", shelf, kind, *arguments, saw]]
    if kind in ACROSS:
        return _seen_across(kind, arguments[0], saw)
    if kind == "purge":
        conditions, limit, stamp = arguments
        deleted = [["write", shelf, row[ID], row[STAMP], stamp, None] for row in saw]
        return [["query", shelf, "select", conditions, limit, saw], *deleted]
    if kind == "guard":
        topic, books_max, row = arguments
        counted = ["query", shelf, "count", {"topic": topic}, 0, saw]
        held = [*row[:RANK], saw, *row[STAMP:]]
        return [counted, ["write", shelf, row[ID], None, row[STAMP], held]] if saw < books_max else [counted]
    if kind == "insert":
        (row,) = arguments
        return [["write", shelf, row[ID], None, row[STAMP], row]]
    id, new = arguments
    point: Step = ["query", shelf, "get", {"id": id}, 0, saw]
    if saw is None:
        return [point]
    return [point, ["write", shelf, id, saw, *([new[STAMP], new] if kind == "move" else [new, None])]]


def written_by(transaction: Transaction) -> list[Step]:
    """What a transaction writes if it commits, so far as it is known without its outcome: with no stamp replaced, and
    where it only may write a row, with no row.
    """
    steps: list[Step] = []
    for kind, shelf, *arguments in [*transaction.operations, *map(relayed, transaction.branches)]:
        last = arguments[-1]
        if isinstance(last, list):
            steps.append(["write", shelf, last[ID], None, last[STAMP], last])
        elif kind not in QUERIES and kind not in ACROSS:
            steps.append(["write", shelf, arguments[0] if kind == "delete" else None, None, last, None])
    return steps


def _seen_across(kind: str, hall: int, saw: list[list[Any]]) -> list[Step]:
    """A query over a hall sees all of each of its shelves."""
    shelves = range(hall * SHELVES_PER_HALL, (hall + 1) * SHELVES_PER_HALL)
    told = "select" if kind == "books_in_hall" else "keys"
    return [["query", shelf, told, {}, 0, [found for at, found in saw if at == shelf]] for shelf in shelves]

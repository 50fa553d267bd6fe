"""The workload of shelves, and what its transactions tell."""

from __future__ import annotations

from collections import Counter

from proof.judge.rows.request import RowsWorkload, Transaction, relayed, steps_of, written_by
from proof.judge.rows.shelf import ACROSS

NEW = [5, 1, 0, 3, 50, ""]


def test_a_seed_gives_the_same_transactions_and_each_stamp_is_written_once() -> None:
    one, two, other = RowsWorkload(5, 1), RowsWorkload(5, 1), RowsWorkload(5, 2)
    drawn = [one.draw() for _ in range(300)]
    assert drawn == [two.draw() for _ in range(300)]
    assert drawn != [other.draw() for _ in range(300)]
    stamps = [step[4] for transaction in drawn for step in written_by(transaction)]
    assert len(set(stamps)) == len(stamps) > 300


def test_all_kinds_of_transactions_and_operations_are_drawn() -> None:
    workload = RowsWorkload(6, 1)
    drawn = [workload.draw() for _ in range(1_000)]
    shares = Counter(transaction.function for transaction in drawn)
    assert shares.keys() == {"transact", "look", "near"}
    assert min(shares.values()) > 50
    kinds = Counter(operation[0] for transaction in drawn for operation in transaction.operations)
    assert kinds.keys() == {"select", "keys", "count", "exists", "insert", "guard", "move", "delete", "purge"} | set(
        ACROSS
    )
    branches = [branch for transaction in drawn for branch in transaction.branches]
    assert {branch[0] for branch in branches} == {"insert", "echo", "move", "relay"}
    assert {relayed(branch)[0] for branch in branches} == {"insert", "echo", "move"}


def test_transactions_that_insert_one_row_and_read_all_of_a_group_meet() -> None:
    workload = RowsWorkload(6, 1)
    kinds: Counter[tuple[str, ...]] = Counter()
    met = 0
    before: tuple[int, int] | None = None
    for transaction in (workload.draw() for _ in range(1_000)):
        operations = transaction.operations
        kinds[tuple(operation[0] for operation in operations)] += 1
        reads = [(shelf, *where.values()) for kind, shelf, where, *_ in operations if kind == "select" and where]
        written = [(shelf, row[0][1]) for kind, shelf, *row in operations if kind == "insert"]
        if len(operations) == 2 and reads and written:
            met += before in reads
            (before,) = written
    assert min(kinds["insert", "select"], kinds["select", "insert"]) > 40
    assert kinds["insert", "books_in_hall"] + kinds["keys_in_hall", "insert"] > 5
    assert met > 10


def test_a_local_transaction_stays_on_its_shelf_and_a_read_only_one_only_reads() -> None:
    workload = RowsWorkload(6, 1)
    for transaction in (workload.draw() for _ in range(500)):
        if transaction.function == "near":
            assert {each[1] for each in transaction.operations + transaction.branches} <= {transaction.root}
        if transaction.function == "look":
            assert written_by(transaction) == []


def test_what_was_done_becomes_steps() -> None:
    transaction = Transaction(
        1,
        [
            ["count", 1, {}, 0],
            ["insert", 1, NEW],
            ["guard", 2, 1, 3, [6, 1, 0, 7, 60, ""]],
            ["guard", 2, 1, 1, [7, 1, 0, 7, 70, ""]],
            ["move", 1, 4, [4, 2, 1, 1, 40, ""]],
            ["move", 1, 3, [3, 2, 1, 1, 30, ""]],
            ["delete", 1, 2, 20],
            ["purge", 2, {"kind": 0}, 1, 80],
        ],
        [["relay", 9, ["move", 1, 5, [5, 0, 0, 0, 51, ""]]], ["echo", 2, {}, [8, 0, 0, 0, 81, ""]]],
    )
    done = [0, None, 2, 2, 11, None, 12, [[9, 1, 0, 4, 90, ""]]]
    assert steps_of(transaction, done) == [
        ["query", 1, "count", {}, 0, 0],
        ["write", 1, 5, None, 50, NEW],
        ["query", 2, "count", {"topic": 1}, 0, 2],
        ["write", 2, 6, None, 60, [6, 1, 0, 2, 60, ""]],
        ["query", 2, "count", {"topic": 1}, 0, 2],
        ["query", 1, "get", {"id": 4}, 0, 11],
        ["write", 1, 4, 11, 40, [4, 2, 1, 1, 40, ""]],
        ["query", 1, "get", {"id": 3}, 0, None],
        ["query", 1, "get", {"id": 2}, 0, 12],
        ["write", 1, 2, 12, 20, None],
        ["query", 2, "select", {"kind": 0}, 1, [[9, 1, 0, 4, 90, ""]]],
        ["write", 2, 9, 90, 80, None],
        ["write", 1, 5, 50, 51, [5, 0, 0, 0, 51, ""]],
        ["echo", 2, {}, [8, 0, 0, 0, 81, ""]],
    ]

"""Transactions on shelves in a real engine: what is recorded, and that it is judged right."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proof.judge.app import app
from proof.judge.record import UnexpectedReply
from proof.judge.recorded import Recorded
from proof.judge.rows.claimed_order import problems
from proof.judge.rows.dependencies import anomalies
from proof.judge.rows.record import record_rows
from proof.judge.rows.request import RowsWorkload, Transaction
from proof.judge.rows.shelf import Operation
from proof.judge.rows.steps import committed_of, seen_by_echoes
from styx.client.embedded import embedded


class Fixed(RowsWorkload):
    """Given transactions, in turn."""

    def __init__(self, *transactions: Transaction) -> None:
        super().__init__(1, 0)
        self._given = iter(transactions)

    def draw(self) -> Transaction:
        return next(self._given)


def recorded(workload: RowsWorkload, transactions: int, processes: int = 1) -> Recorded:
    async def run() -> Recorded:
        async with embedded(app) as client:
            return await record_rows([client], workload, processes=processes, transactions=transactions)

    return asyncio.run(run())


def book(id: int, rank: int = 0, seen: str = "") -> list[Any]:
    return [id, 0, 0, rank, 10 * id, seen]


def test_an_engine_is_judged_right_with_all_kinds_of_transactions_beside_each_other() -> None:
    done = recorded(RowsWorkload(4, 1), 300, processes=10)
    assert done.count("ok") > 250
    assert done.count("fail") > 3
    assert all(done.commits_by_phase())
    assert any(seen_by_echoes(committed_of(done)).values())
    assert (problems(done), anomalies(done)) == ([], [])


def test_queries_of_all_kinds_tell_what_is_there() -> None:
    queries: list[Operation] = [
        ["select", 1, {"topic": 0}, 1],
        ["select", 1, {"rank": [0, 9]}, -1],
        ["keys", 1, {}, 0],
        ["count", 1, {"kind": 0}, 0],
        ["exists", 1, {"id": [3, 9]}, 0],
        ["books_in_hall", None, 0],
        ["keys_in_hall", None, 0],
    ]
    fill = Transaction(0, [["insert", 1, book(1, rank=5)], ["insert", 2, book(3)]], [["insert", 1, book(2, rank=4)]])
    done = recorded(Fixed(fill, Transaction(1, queries, [], function="look")), 2)
    results = [step[-1] for op in done.ops if op.type == "ok" for step in op.value if step[0] == "query"]
    lowest, highest, other = book(2, rank=4), book(1, rank=5), book(3)
    assert results == [
        [lowest],
        [highest],
        [1, 2],
        2,
        False,
        [],
        [highest, lowest],
        [other],
        [],
        [1, 2],
        [3],
    ]
    assert problems(done) == []


def test_branches_write_what_they_have_seen_in_the_order_of_their_calls() -> None:
    branches: list[Operation] = [
        ["relay", 5, ["relay", 3, ["echo", 1, {"topic": 0}, book(2)]]],
        ["move", 1, 1, [1, 0, 0, 7, 11, ""]],
        ["echo", 1, {"topic": 0}, book(3)],
    ]
    write = Transaction(0, [["insert", 1, book(1)]], branches)
    done = recorded(Fixed(write, Transaction(1, [["select", 1, {}, 0]], [])), 2)
    (found,) = [step[-1] for op in done.ops if op.type == "ok" for step in op.value if step[0] == "query"]
    assert [row[5] for row in found] == ["", "10", "20,11"]


def test_a_guard_a_move_a_deletion_and_a_purge_tell_what_they_saw() -> None:
    operations: list[Operation] = [
        ["guard", 1, 0, 1, book(1, rank=9)],
        ["guard", 1, 0, 1, book(2)],
        ["move", 1, 1, [1, 2, 1, 6, 11, ""]],
        ["move", 1, 7, [7, 2, 1, 6, 12, ""]],
        ["insert", 1, book(3)],
        ["delete", 1, 3, 99],
        ["purge", 1, {}, 0, 98],
        ["exists", 1, {}, 0],
    ]
    done = recorded(Fixed(Transaction(1, operations, [], function="near")), 1)
    assert done.commits_by_phase() == [0, 0, 0, 1]
    assert [step for step in done.ops[1].value if step[0] == "write"] == [
        ["write", 1, 1, None, 10, [1, 0, 0, 0, 10, ""]],
        ["write", 1, 1, 10, 11, [1, 2, 1, 6, 11, ""]],
        ["write", 1, 3, None, 30, book(3)],
        ["write", 1, 3, 30, 99, None],
        ["write", 1, 1, 11, 98, None],
    ]
    assert problems(done) == []


def test_a_reply_that_no_transaction_can_have_ends_the_recording() -> None:
    twice = Transaction(1, [["insert", 1, book(1)], ["insert", 1, book(1)]], [])
    with pytest.raises(ExceptionGroup) as caught:
        recorded(Fixed(twice), 1)
    assert caught.group_contains(UnexpectedReply, match="RowExists")

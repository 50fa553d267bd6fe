"""A history of rows in adya's words: what it is told, and what is left out because it could mean two things."""

from __future__ import annotations

from typing import Any

from proof.judge.recorded import Recorder
from proof.judge.rows.lists import as_lists

FIRST, SECOND = [1, 0, 0, 0, 10, ""], [1, 1, 0, 0, 11, ""]
EMPTY = ["query", 1, "select", {"topic": 0}, 0, []]


def told(*transactions: tuple[int, list[Any]]) -> list[list[Any]]:
    """What the transactions are in adya's words. Each has the process that does it; those of one process are one after
    the other, and the others begin first of all.
    """
    recorder, begun = Recorder("rows"), set()
    for process, _ in transactions:
        if process not in begun:
            recorder.begin(process, [])
            begun.add(process)
    for number, (process, steps) in enumerate(transactions):
        if process not in begun:
            recorder.begin(process, [])
        begun.discard(process)
        recorder.commit(process, steps, (number, 1, process))
    return [op.value for op in as_lists(recorder.recorded()).ops if op.type == "ok"]


def test_a_row_is_the_list_of_its_versions() -> None:
    insert = ["write", 1, 1, None, 10, FIRST]
    move = ["write", 1, 1, 10, 11, SECOND]
    delete = ["write", 1, 1, 11, 99, None]
    look = ["query", 1, "select", {}, 0, [SECOND]]
    assert told((0, [insert]), (0, [move]), (0, [look]), (0, [delete]), (0, [["query", 1, "keys", {}, 0, []]])) == [
        [["r", "1/1", []], ["append", "1/1", 10]],
        [["r", "1/1", [10]], ["append", "1/1", 11]],
        [["r", "1/1", [10, 11]]],
        [["r", "1/1", [10, 11]], ["append", "1/1", 99]],
        [["r", "1/1", [10, 11, 99]]],
    ]


def test_a_row_that_is_not_given_is_read_where_time_decides_and_else_left_out() -> None:
    insert, delete = ["write", 1, 1, None, 10, FIRST], ["write", 1, 1, 10, 99, None]
    before, after = (
        told((0, [EMPTY]), (0, [insert]), (0, [delete]))[0],
        told((0, [insert]), (0, [delete]), (0, [EMPTY]))[2],
    )
    assert (before, after) == ([["r", "1/1", []]], [["r", "1/1", [10, 99]]])
    assert told((0, [insert]), (0, [delete]), (1, [EMPTY]))[2] == []


def test_a_row_that_is_never_in_a_range_is_not_read() -> None:
    assert told((0, [["write", 1, 1, None, 11, SECOND]]), (0, [EMPTY]))[1] == []


def test_what_a_transaction_wrote_itself_is_not_told() -> None:
    own = ["query", 1, "select", {}, 0, [FIRST]]
    assert told((0, [["write", 1, 1, None, 10, FIRST], own]))[0] == [["r", "1/1", []], ["append", "1/1", 10]]

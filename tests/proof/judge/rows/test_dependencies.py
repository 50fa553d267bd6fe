"""The search of any order: what it can explain although the engine claims another order, and what it works out."""

from __future__ import annotations

from typing import Any

import pytest

from proof.judge.recorded import Recorded, Recorder
from proof.judge.rows.claimed_order import problems
from proof.judge.rows.dependencies import anomalies, cycle_name
from proof.judge.rows.query import Row

Step = list[Any]


def book(id: int, topic: int = 0, stamp: int = 0) -> Row:
    return [id, topic, 0, 0, stamp or id, ""]


def write(id: int, replaced: int | None, row: Row | None) -> Step:
    return ["write", 1, id, replaced, 100 + id if row is None else row[4], row]


def query(kind: str, topic: int, result: Any) -> Step:
    return ["query", 1, kind, {"topic": topic}, 0, result]


def beside(*transactions: list[Step]) -> Recorded:
    """All begin, and then all end; claimed is the order of their ends."""
    recorder = Recorder("rows")
    for process, _ in enumerate(transactions):
        recorder.begin(process, [])
    for process, steps in enumerate(transactions):
        recorder.commit(process, steps, (1, 1, process))
    return recorder.recorded()


def one_after_the_other(*transactions: list[Step]) -> Recorded:
    recorder = Recorder("rows")
    for number, steps in enumerate(transactions):
        recorder.begin(0, [])
        recorder.commit(0, steps, (number, 1, 0))
    return recorder.recorded()


def test_another_order_than_the_claimed_one_is_no_anomaly() -> None:
    recorded = beside([write(1, None, book(1))], [query("select", 0, [])])
    assert problems(recorded)
    assert anomalies(recorded) == []


def test_a_row_that_is_not_given_may_come_later_or_be_gone_but_not_both() -> None:
    """A reader that sees neither row: the first was deleted after the second came."""
    first, second = [write(1, None, book(1))], [write(2, None, book(2, topic=1))]
    gone = [query("select", 1, [book(2, topic=1)]), write(1, 1, None)]
    reader = [query("select", 0, []), query("select", 1, [])]
    assert anomalies(beside(first, second, gone, reader)) == []
    wrong = beside([*first, *second], gone, [query("select", 0, [book(1)]), query("select", 1, [])])
    assert anomalies(wrong)[0].startswith("G-single-predicate: ")


def test_what_was_not_given_is_placed_by_what_else_the_reader_saw() -> None:
    """It saw what the deleter wrote, so the row was gone; another reader, that sees the row, comes before."""
    gone = [write(1, 1, None), write(2, None, book(2, topic=1))]
    reader = [query("select", 0, []), query("select", 1, [book(2, topic=1)]), write(3, None, book(3, topic=2))]
    late = [query("select", 2, [book(3, topic=2)]), query("select", 0, [book(1)])]
    assert anomalies(beside([write(1, None, book(1))], gone, reader, late[1:])) == []
    assert anomalies(beside([write(1, None, book(1))], gone, reader, late))


def test_what_a_count_leaves_open_follows_from_time() -> None:
    recorded = one_after_the_other([write(1, None, book(1))], [write(2, None, book(2))], [query("count", 0, 1)])
    assert anomalies(recorded)[0].startswith("phantom in a count: the transaction ended at 5 was told 1 by count")
    assert "2 to 2 are possible" in anomalies(recorded)[0]


def test_a_count_decides_which_rows_were_there_and_others_must_agree() -> None:
    writes = [[write(1, None, book(1))], [write(2, None, book(2))]]
    both = [query("count", 0, 2), write(3, None, book(3, topic=1))]
    none = [query("select", 1, [book(3, topic=1)]), query("count", 0, 0)]
    assert anomalies(beside(*writes, both, [query("count", 0, 1)])) == []
    assert anomalies(beside(*writes, both, none))


@pytest.mark.parametrize("there", [True, False])
def test_what_exists_is_a_count_of_one_or_more(there: bool) -> None:
    recorded = one_after_the_other([write(1, None, book(1))], [query("exists", 0, there)])
    assert (anomalies(recorded) == []) is there
    nothing = one_after_the_other([query("exists", 0, there)], [write(1, None, book(1))])
    assert (anomalies(nothing) == []) is not there


def test_a_shelf_of_a_transaction_with_an_unknown_outcome_is_not_judged() -> None:
    recorder = Recorder("rows")
    recorder.begin(9, [])
    recorder.lose(9, [write(7, None, book(7))], "TimeoutError")
    for _ in range(2):
        recorder.begin(0, [])
    recorder.commit(0, [query("select", 0, [book(7)]), ["query", 2, "select", {}, 0, [book(8)]]], (1, 1, 1))
    recorded = recorder.recorded()
    assert [found.split(": ")[0] for found in anomalies(recorded)] == ["unknown version"]
    assert len(problems(recorded)) == 1
    assert all("on shelf 2" in found for found in anomalies(recorded) + problems(recorded))


def test_a_version_that_another_one_of_its_transaction_replaced_is_not_to_be_seen() -> None:
    two = [write(1, None, book(1)), write(1, 1, book(1, stamp=10))]
    assert anomalies(beside(two, [query("select", 0, [book(1, stamp=10)])])) == []
    assert anomalies(beside(two, [query("select", 0, [book(1)])]))[0].startswith("unknown version: ")


def test_a_row_is_as_its_version_was_written() -> None:
    recorded = beside([write(1, None, book(1))], [query("select", 3, [book(1, topic=3)])])
    assert anomalies(recorded)[0].startswith("torn row: ")


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (["ww", "ww"], "G0"),
        (["ww", "wr of row 1"], "G1c"),
        (["ww", "predicate wr of row 1"], "G1c-predicate"),
        (["rw of row 1", "wr of row 2"], "G-single"),
        (["rw of row 1", "predicate rw of row 2"], "G2-predicate"),
        (["predicate rw of row 1", "time", "ww"], "G-single-predicate-realtime"),
    ],
)
def test_cycles_have_the_names_that_adya_gave_them(names: list[str], name: str) -> None:
    assert cycle_name(names) == name

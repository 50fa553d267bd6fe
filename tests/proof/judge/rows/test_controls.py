"""What a fault in queries of rows would do, written down by hand: the judge must see it, and name it.

Each control is a pair of histories: one that is right, and one with a single difference.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from proof.judge import adya
from proof.judge.recorded import Recorded, Recorder
from proof.judge.rows.claimed_order import problems
from proof.judge.rows.dependencies import anomalies
from proof.judge.rows.lists import as_lists
from proof.judge.rows.query import Conditions, Row
from proof.judge.rows.request import Step

SHELF: Final = 7


def book(id: int, topic: int = 0, rank: int = 0, stamp: int = 0, seen: str = "") -> Row:
    """A version of a row. Stamps are ids, for first versions."""
    return [id, topic, 0, rank, stamp or id, seen]


class History:
    """A history of one shelf."""

    def __init__(self) -> None:
        self.recorder = Recorder("rows")
        self._epoch = 0

    def alone(self, *steps: Step) -> None:
        """A transaction that begins and ends by itself, in an epoch of its own."""
        self.beside([*steps])

    def beside(self, *transactions: list[Step]) -> None:
        """Transactions of one epoch, in its serial order: all begin, and then all end."""
        self._epoch += 1
        for process, _ in enumerate(transactions):
            self.recorder.begin(process, [])
        for process, steps in enumerate(transactions):
            self.recorder.commit(process, steps, (self._epoch, 1, process))


def insert(row: Row) -> Step:
    return ["write", SHELF, row[0], None, row[4], row]


def move(row: Row, replaced: int) -> Step:
    return ["write", SHELF, row[0], replaced, row[4], row]


def delete(id: int, replaced: int, stamp: int = 99) -> Step:
    return ["write", SHELF, id, replaced, stamp, None]


def select(conditions: Conditions, *rows: Row, limit: int = 0) -> Step:
    return ["query", SHELF, "select", conditions, limit, list(rows)]


def count(conditions: Conditions, number: int) -> Step:
    return ["query", SHELF, "count", conditions, 0, number]


def keys(conditions: Conditions, *ids: int) -> Step:
    return ["query", SHELF, "keys", conditions, 0, list(ids)]


def exists(conditions: Conditions, there: bool) -> Step:
    return ["query", SHELF, "exists", conditions, 0, there]


def two_inserts_do_not_see_each_other(h: History, false: bool) -> None:
    """The predicate write skew: each adds a row to the topic that it has found empty."""
    h.beside(
        [select({"topic": 0}), insert(book(1))],
        [select({"topic": 0}) if false else select({"topic": 0}, book(1)), insert(book(2))],
    )


def two_counts_do_not_see_each_others_insert(h: History, false: bool) -> None:
    h.beside([count({"topic": 0}, 0), insert(book(1))], [count({"topic": 0}, 0 if false else 1), insert(book(2))])


def a_guard_lets_two_in(h: History, false: bool) -> None:
    h.alone(insert(book(1)))
    third = [] if not false else [insert(book(3))]
    h.beside([count({"topic": 0}, 1), insert(book(2))], [count({"topic": 0}, 1 if false else 2), *third])


def a_query_misses_a_row_that_was_there(h: History, false: bool) -> None:
    h.alone(insert(book(1)))
    h.alone(select({"topic": 0}) if false else select({"topic": 0}, book(1)))


def a_query_gives_a_row_that_was_deleted(h: History, false: bool) -> None:
    h.alone(insert(book(1)))
    h.alone(delete(1, 1))
    h.alone(select({"topic": 0}, book(1)) if false else select({"topic": 0}))


def a_row_is_in_no_topic_while_it_moves(h: History, false: bool) -> None:
    """Between two moments: it has left the one topic and is not yet in the other."""
    h.alone(insert(book(1)))
    h.beside(
        [select({"topic": 0}) if false else select({"topic": 0}, book(1)), select({"topic": 1})],
        [move(book(1, topic=1, stamp=10), 1)],
    )


def a_row_is_in_two_topics_while_it_moves(h: History, false: bool) -> None:
    h.alone(insert(book(1)))
    moved = book(1, topic=1, stamp=10)
    there = select({"topic": 1}, moved) if false else select({"topic": 1})
    h.beside([select({"topic": 0}, book(1)), there], [move(moved, 1)])


def half_of_an_insert_of_two_is_seen(h: History, false: bool) -> None:
    both = [book(1, topic=0), book(2, topic=1)]
    h.beside(
        [insert(both[0]), insert(both[1])],
        [select({"topic": 0}, both[0]), select({"topic": 1}) if false else select({"topic": 1}, both[1])],
    )


def the_first_of_a_range_is_not_the_first(h: History, false: bool) -> None:
    h.alone(insert(book(1, rank=3)), insert(book(2, rank=5)))
    first = book(2, rank=5) if false else book(1, rank=3)
    h.alone(select({"rank": [0, 9]}, first, limit=1))


def a_row_behind_the_last_that_was_asked_for_is_no_phantom(h: History, false: bool) -> None:
    """The range of a query with a limit ends at its last row: before it a row would be a phantom, behind it not."""
    h.alone(insert(book(1, rank=3)))
    other = book(2, rank=2 if false else 4)
    h.alone(insert(other))
    h.alone(select({"topic": 0}, book(1, rank=3), limit=1))


def a_branch_does_not_see_its_elder_sibling(h: History, false: bool) -> None:
    """What a branch saw is in the row that it wrote."""
    h.alone(insert(book(1)), ["echo", SHELF, {"topic": 0}, book(2, topic=1)])
    h.alone(select({"topic": 1}, book(2, topic=1, seen="" if false else "1")))


def two_branches_do_not_see_each_other(h: History, false: bool) -> None:
    h.beside([["echo", SHELF, {}, book(1)]], [["echo", SHELF, {}, book(2)]])
    h.alone(select({}, book(1), book(2, seen="" if false else "1")))


def a_write_of_the_transaction_itself_is_not_in_its_query(h: History, false: bool) -> None:
    h.alone(insert(book(1)), select({"topic": 0}) if false else select({"topic": 0}, book(1)))


def an_index_holds_the_place_that_a_row_had(h: History, false: bool) -> None:
    """The query by rank gives the row as it is now, at the rank that it had."""
    h.alone(insert(book(1, rank=1)))
    h.alone(move(book(1, rank=5, stamp=10), 1))
    h.alone(select({"rank": [0, 2]}, book(1, rank=5, stamp=10)) if false else select({"rank": [0, 2]}))


def keys_lack_one(h: History, false: bool) -> None:
    h.alone(insert(book(1)), insert(book(2)))
    h.alone(keys({}, 1) if false else keys({}, 1, 2))


def nothing_exists_where_something_does(h: History, false: bool) -> None:
    h.alone(insert(book(1)))
    h.beside([move(book(1, topic=1, stamp=10), 1)], [exists({}, not false)])


def a_row_comes_back(h: History, false: bool) -> None:
    h.alone(insert(book(1)))
    h.beside(
        [delete(1, 1)],
        [select({"topic": 0}), insert(book(2, topic=1))],
        [select({"topic": 1}, book(2, topic=1)), select({"topic": 0}, book(1)) if false else select({"topic": 0})],
    )


def an_update_is_lost(h: History, false: bool) -> None:
    h.alone(insert(book(1)))
    h.beside([move(book(1, stamp=10), 1)], [move(book(1, stamp=11), 1 if false else 10)])


def one_id_is_inserted_twice(h: History, false: bool) -> None:
    h.beside([insert(book(1))], [insert(book(1, stamp=10)) if false else insert(book(2))])


def a_query_sees_a_refused_insert(h: History, false: bool) -> None:
    h.recorder.begin(0, [])
    h.recorder.fail(0, [insert(book(1))], "Refused")
    h.alone(select({}, book(1)) if false else select({}))


CONTROLS: Final[dict[Callable[[History, bool], None], tuple[str, bool]]] = {
    two_inserts_do_not_see_each_other: ("G2-predicate", True),
    two_counts_do_not_see_each_others_insert: ("G2-predicate", True),
    a_guard_lets_two_in: ("G2-predicate", False),
    a_query_misses_a_row_that_was_there: ("G-single-predicate-realtime", True),
    a_query_gives_a_row_that_was_deleted: ("G-single-realtime", True),
    a_row_is_in_no_topic_while_it_moves: ("phantom", True),
    a_row_is_in_two_topics_while_it_moves: ("G-single", True),
    half_of_an_insert_of_two_is_seen: ("G-single-predicate", True),
    the_first_of_a_range_is_not_the_first: ("G-single-predicate", True),
    a_row_behind_the_last_that_was_asked_for_is_no_phantom: ("G-single-predicate-realtime", True),
    a_branch_does_not_see_its_elder_sibling: ("not its own write", False),
    two_branches_do_not_see_each_other: ("G2-predicate", True),
    a_write_of_the_transaction_itself_is_not_in_its_query: ("not its own write", False),
    an_index_holds_the_place_that_a_row_had: ("contradiction", False),
    keys_lack_one: ("G-single-predicate", True),
    nothing_exists_where_something_does: ("G-single-predicate-realtime", True),
    a_row_comes_back: ("phantom", True),
    an_update_is_lost: ("lost update", True),
    one_id_is_inserted_twice: ("lost update", True),
    a_query_sees_a_refused_insert: ("unknown version", False),
}
"""How the anomaly is named, and whether adya sees it, which is told nothing of counts, branches and refused rows."""


def made(control: Callable[[History, bool], None], false: bool) -> Recorded:
    history = History()
    control(history, false)
    return history.recorder.recorded()


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.__name__)
def test_the_checks_see(control: Callable[[History, bool], None]) -> None:
    assert (problems(made(control, False)), anomalies(made(control, False))) == ([], [])
    recorded = made(control, True)
    assert problems(recorded)
    assert [found.split(":")[0] for found in anomalies(recorded)][:1] == [CONTROLS[control][0]]


@pytest.mark.slow
@pytest.mark.usefixtures("judge")
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.__name__)
def test_adya_sees(control: Callable[[History, bool], None], tmp_path: Path) -> None:
    def judged(false: bool) -> Any:
        lists = as_lists(made(control, false))
        lists.save(tmp_path)
        return adya.check(lists, tmp_path).valid

    assert judged(False) is not False  # of a history without a row that was seen it is not sure
    assert judged(True) is not CONTROLS[control][1]

"""A table: what a read at an epoch gives, and that a commit reaches the entities and the next snapshot alike."""

from __future__ import annotations

from typing import Any

import pytest

from styx.state.table import NEWEST, Table


def test_a_commit_is_in_the_entities_and_in_the_changes() -> None:
    table = Table({}, -1)
    table.commit(0, {1: b"one"})
    assert (table.reader(0)(1), dict(table.at(0)), len(table)) == (b"one", {1: b"one"}, 1)
    assert table.take_changes() == {1: b"one"}
    assert table.take_changes() == {}


def test_a_deletion_empties_the_table_and_stays_in_the_changes() -> None:
    table = Table({1: b"one"}, -1)
    table.commit(0, {1: None, 2: None})
    assert (table.reader(0)(1), len(table)) == (None, 0)
    assert table.take_changes() == {1: None, 2: None}


@pytest.mark.parametrize("value", [b"new", None])
def test_a_single_write_does_what_a_commit_of_many_does(value: bytes | None) -> None:
    one, many = Table({1: b"old", 2: b"kept"}, -1), Table({1: b"old", 2: b"kept"}, -1)
    one.write(0, 1, value)
    many.commit(0, {1: value})
    assert one.epoch == many.epoch == 0
    assert dict(one.at(0)) == dict(many.at(0)) == {2: b"kept", **({1: value} if value else {})}
    assert one.take_changes() == many.take_changes() == {1: value}


def test_an_epoch_commits_more_than_once() -> None:
    table = Table({}, -1)
    table.commit(3, {1: b"lock-free"})
    table.commit(3, {1: b"lock phase"})
    assert table.reader(3)(1) == b"lock phase"


def test_a_read_names_the_epoch_whose_end_it_means() -> None:
    table = Table({1: b"found"}, 4)
    assert table.reader(4)(1) == table.reader(5)(1) == b"found", "nothing has changed it since"
    table.commit(5, {1: b"new"})
    for read in (lambda: table.reader(4)(1), lambda: table.at(4)):
        with pytest.raises(AssertionError, match="later commits have changed"):
            read()
    assert table.reader(5)(1) == table.reader(NEWEST)(1) == b"new"


def test_a_commit_comes_no_earlier_than_the_last_one() -> None:
    table = Table({}, 4)
    with pytest.raises(AssertionError, match="behind the last one"):
        table.commit(3, {1: b"late"})
    with pytest.raises(AssertionError, match="behind the last one"):
        table.write(3, 1, b"late")


def test_nobody_else_writes() -> None:
    seen: Any = Table({1: b"one"}, 0).at(0)
    with pytest.raises(TypeError):
        seen[1] = b"two"


def test_changes_that_no_snapshot_has_go_under_the_newer_ones() -> None:
    table = Table({}, -1)
    table.commit(0, {1: b"a", 2: b"a"})
    taken = table.take_changes()
    table.commit(1, {1: b"b"})
    table.give_back(taken)
    assert table.take_changes() == {1: b"b", 2: b"a"}

"""An index of a table on one slot: groups in order, kept up as rows change."""

from __future__ import annotations

from random import Random

import pytest

from styx.relational.index_range import HIGHEST, LOWEST, TOP, Group, Position, RowKey, TableIndex
from styx.state.sorted_index import SortedIndex
from styx.state.table import Table


class ByValue(TableIndex):
    """Rows of a group by their value, a byte; the value x is in no group."""

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        return None if data == b"x" else (key[:1], (data, *key[1:]))


BY_VALUE = ByValue("cart/items", 1, "by value")


def walked(index: SortedIndex, group: Group = ("ada",), low: Position = LOWEST, high: Position = HIGHEST) -> list[int]:
    return [key[1] for _, key in index.walk(group, low, high)]


def test_a_group_is_in_order_however_its_rows_came() -> None:
    index = SortedIndex(BY_VALUE, 4, [(("ada", 1), b"c"), (("bob", 1), b"a"), (("ada", 2), b"a"), (("ada", 3), b"x")])
    index.move(("ada", 4), None, b"b")
    assert walked(index) == [2, 4, 1]
    assert [key[1] for _, key in index.walk(("ada",), LOWEST, HIGHEST, backwards=True)] == [1, 4, 2]
    assert walked(index, ("bob",)) == [1]
    assert walked(index, ("eve",)) == []


def test_a_range_has_its_lower_bound_and_not_its_upper_one() -> None:
    index = SortedIndex(BY_VALUE, 4, [(("ada", n), bytes([97 + n])) for n in range(5)])
    assert walked(index, low=(b"b",), high=(b"d",)) == [1, 2]
    assert walked(index, low=(b"b", 1), high=(b"d", 3)) == [1, 2]
    assert walked(index, low=(b"b", TOP), high=(b"d", TOP)) == [2, 3]
    assert index.count(("ada",), (b"b",), (b"d",)) == 2
    assert index.count(("ada",), (b"d",), (b"b",)) == 0
    assert index.count(("eve",), LOWEST, HIGHEST) == 0


def test_a_row_moves_leaves_and_comes() -> None:
    index = SortedIndex(BY_VALUE, 4, [(("ada", 1), b"a"), (("ada", 2), b"b")])
    index.move(("ada", 1), b"a", b"c")
    assert walked(index) == [2, 1]
    index.move(("ada", 2), b"b", b"x")
    index.move(("ada", 2), b"x", b"x")
    assert walked(index) == [1]
    index.move(("ada", 1), b"c", None)
    index.move(("ada", 2), b"x", b"d")
    assert walked(index) == [2]


def test_a_table_keeps_its_indexes_up() -> None:
    rng, table = Random(3), Table({("ada", 0): b"q"}, -1)
    table.make_index(BY_VALUE, 4)
    for epoch in range(50):
        keys = [(rng.choice(["ada", "bob"]), rng.randrange(6)) for _ in range(3)]
        values = {key: rng.choice([b"a", b"b", b"c", b"x", b""]) or None for key in keys}
        if epoch % 2:
            table.commit(epoch, {key: value or b"a" for key, value in values.items()})
        else:
            for key, value in values.items():
                table.write(epoch, key, value)
        table.check_indexes(4)
    assert table.index(50, BY_VALUE) is not None


def test_an_index_that_disagrees_with_its_rows_is_found() -> None:
    table = Table({("ada", 0): b"q"}, -1)
    table.make_index(BY_VALUE, 4).move(("ada", 9), None, b"a")
    with pytest.raises(AssertionError, match="index 'by value' of 'cart/items' is not that of its rows"):
        table.check_indexes(4)


def test_a_generation_begins_without_indexes() -> None:
    table = Table({("ada", 0): b"q"}, -1)
    table.make_index(BY_VALUE, 4)
    table.forget_indexes()
    assert table.index(-1, BY_VALUE) is None
    assert table.replaced({("ada", 0): b"r"}).index(-1, BY_VALUE) is None

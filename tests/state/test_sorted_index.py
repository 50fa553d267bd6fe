"""An index of a table on one slot: groups in order, kept up as rows change."""

from __future__ import annotations

from random import Random

import pytest

from styx.relational.index_range import HIGHEST, LOWEST, TOP, Group, Position, RowKey, TableIndex
from styx.state.entity_keys import EntityKeys
from styx.state.sorted_index import SortedIndex
from styx.state.table import MANY_ROWS, Table


class ByValue(TableIndex):
    """Rows of a group by their value, a byte; the value x is in no group."""

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        return None if data == b"x" else (key[:1], (data, *key[1:]))


class Unreadable(TableIndex):
    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        raise ValueError("no value")


BY_VALUE = ByValue("cart/items", 1, "by value")
OF_ENTITIES = ByValue("cart/items", 2, "of entities", 1)
KEYS = TableIndex("cart/items", 0, "primary key", 1)
DECLARED = (KEYS, BY_VALUE, OF_ENTITIES)


def index_of(rows: list[tuple[RowKey, bytes]]) -> SortedIndex:
    index = SortedIndex(BY_VALUE, 4)
    index.take(rows)
    return index


def walked(index: SortedIndex, group: Group = ("ada",), low: Position = LOWEST, high: Position = HIGHEST) -> list[int]:
    return [key[1] for _, key in index.walk(group, low, high)]


def test_a_group_is_in_order_however_its_rows_came() -> None:
    index = index_of([(("ada", 1), b"c"), (("bob", 1), b"a"), (("ada", 2), b"a"), (("ada", 3), b"x")])
    index.move(("ada", 4), None, b"b")
    assert walked(index) == [2, 4, 1]
    assert [key[1] for _, key in index.walk(("ada",), LOWEST, HIGHEST, backwards=True)] == [1, 4, 2]
    assert walked(index, ("bob",)) == [1]
    assert walked(index, ("eve",)) == []


def test_a_range_has_its_lower_bound_and_not_its_upper_one() -> None:
    index = index_of([(("ada", n), bytes([97 + n])) for n in range(5)])
    assert walked(index, low=(b"b",), high=(b"d",)) == [1, 2]
    assert walked(index, low=(b"b", 1), high=(b"d", 3)) == [1, 2]
    assert walked(index, low=(b"b", TOP), high=(b"d", TOP)) == [2, 3]
    assert index.count(("ada",), (b"b",), (b"d",)) == 2
    assert index.count(("ada",), (b"d",), (b"b",)) == 0
    assert index.count(("eve",), LOWEST, HIGHEST) == 0


def test_a_row_moves_leaves_and_comes() -> None:
    index = index_of([(("ada", 1), b"a"), (("ada", 2), b"b")])
    index.move(("ada", 1), b"a", b"c")
    assert walked(index) == [2, 1]
    index.move(("ada", 2), b"b", b"x")
    index.move(("ada", 2), b"x", b"x")
    assert walked(index) == [1]
    index.move(("ada", 1), b"c", None)
    index.move(("ada", 2), b"x", b"d")
    assert walked(index) == [2]


def test_an_entity_is_taken_in_when_it_is_asked_for() -> None:
    index = SortedIndex(OF_ENTITIES, 4)
    assert not index.has(("ada",))
    index.move(("ada", 1), None, b"a")
    assert walked(index) == []
    index.take([(("ada", 2), b"b"), (("ada", 1), b"a")], ("ada",))
    assert index.has(("ada",))
    index.move(("ada", 3), None, b"a")
    index.move(("bob", 3), None, b"a")
    assert walked(index) == [1, 3, 2]
    assert walked(index, ("bob",)) == []
    index.forget(("ada",))
    assert not index.has(("ada",))


def test_an_index_with_a_row_that_cannot_be_read_is_as_before() -> None:
    index = SortedIndex(Unreadable("cart/items", 1, "unreadable", 1), 4)
    with pytest.raises(ValueError, match="no value"):
        index.take([(("ada", 1), b"a")], ("ada",))
    assert not index.has(("ada",))


# The indexes of a table ------------------------------------------------------------------------------------


def asked(table: Table, index: TableIndex, group: Group = ("ada",)) -> list[RowKey]:
    made = table.index(99, index, group)
    if made is None:
        made = table.make_index(index, group, 4)
    if isinstance(made, EntityKeys):
        return list(made.walk(group, LOWEST, HIGHEST))
    return [key for _, key in made.walk(group, LOWEST, HIGHEST)]


@pytest.mark.parametrize("declared", [DECLARED, ()], ids=["declared", "undeclared"])
def test_a_table_keeps_its_indexes_up(declared: tuple[TableIndex, ...]) -> None:
    rng, table = Random(3), Table({("ada", 0): b"q"}, -1)
    table.declare(declared, 4)
    for _ in table.fill():
        pass
    for epoch in range(50):
        keys = [(rng.choice(["ada", "bob", "eve"]), rng.randrange(6)) for _ in range(3)]
        values = {key: rng.choice([b"a", b"b", b"c", b"x", b""]) or None for key in keys}
        if epoch % 2:
            table.commit(epoch, {key: value or b"a" for key, value in values.items()})
        else:
            for key, value in values.items():
                table.write(epoch, key, value)
        if epoch >= 10:
            rows = table.at(99)
            for group in [(rng.choice(["ada", "bob", "eve"]),)]:
                of_group = sorted(key for key in rows if key[:1] == group)
                assert asked(table, KEYS, group) == of_group
                wanted = sorted((rows[key], *key[1:]) for key in of_group if rows[key] != b"x")
                assert [(rows[key], *key[1:]) for key in asked(table, OF_ENTITIES, group)] == wanted
                assert asked(table, BY_VALUE, group) == asked(table, OF_ENTITIES, group)
        table.check_indexes(4)
    assert table.indexes_made == 3


def test_an_empty_table_has_its_indexes_from_the_beginning_and_a_loaded_one_when_they_are_filled() -> None:
    empty, loaded = Table({}, -1), Table({("ada", 0): b"q"}, -1)
    for table in (empty, loaded):
        table.declare(DECLARED, 4)
    assert empty.index(-1, BY_VALUE, ("ada",)) is not None
    assert loaded.index(-1, BY_VALUE, ("ada",)) is loaded.index(-1, KEYS, ("ada",)) is None
    for _ in loaded.fill():
        pass
    assert loaded.index(-1, BY_VALUE, ("ada",)) is not None
    assert loaded.index(-1, KEYS, ("ada",)) is not None
    assert loaded.index(-1, OF_ENTITIES, ("ada",)) is None, "nobody has asked for it"
    assert asked(loaded, OF_ENTITIES) == [("ada", 0)]
    assert loaded.index(-1, OF_ENTITIES, ("ada",)) is not None


def test_a_query_of_an_entity_without_rows_leaves_nothing() -> None:
    table = Table({("ada", 0): b"q"}, -1)
    table.declare(DECLARED, 4)
    assert asked(table, OF_ENTITIES, ("eve",)) == []
    assert table.index(-1, OF_ENTITIES, ("eve",)) is None
    assert asked(table, OF_ENTITIES) == [("ada", 0)]
    table.write(0, ("ada", 0), None)
    assert table.index(0, OF_ENTITIES, ("ada",)) is None, "an entity that has gone is forgotten"
    table.check_indexes(4)


@pytest.mark.parametrize("loaded", [True, False])
def test_an_entity_that_comes_to_have_many_rows_is_taken_in_before_a_query_asks(loaded: bool) -> None:
    rows = {("ada", number): b"a" for number in range(MANY_ROWS)}
    table = Table(rows if loaded else {}, -1)
    table.declare(DECLARED, 4)
    for _ in table.fill():
        pass
    if not loaded:
        table.commit(0, rows)
        assert table.index(0, OF_ENTITIES, ("ada",)) is None
        table.write(0, ("ada", -1), b"b")
    assert table.index(0, OF_ENTITIES, ("ada",)) is not None
    table.check_indexes(4)


def test_an_entity_that_comes_to_have_many_rows_is_taken_in_with_what_the_same_commit_changes() -> None:
    table = Table({}, -1)
    table.declare(DECLARED, 4)
    table.commit(0, {("ada", number): b"a" for number in range(MANY_ROWS)})
    table.commit(1, {("ada", 7): b"z", ("ada", MANY_ROWS): b"b", ("ada", MANY_ROWS + 1): b"c", ("ada", 3): None})
    assert table.index(1, OF_ENTITIES, ("ada",)) is not None
    table.check_indexes(4)


def test_loading_leaves_a_row_that_cannot_be_read_to_the_queries() -> None:
    table = Table({("ada", number): b"a" for number in range(MANY_ROWS)}, -1)
    wide, of_entities = Unreadable("cart/items", 1, "wide"), Unreadable("cart/items", 2, "of entities", 1)
    table.declare((KEYS, wide, of_entities), 4)
    for _ in table.fill():
        pass
    assert len(asked(table, KEYS)) == MANY_ROWS
    for index in (wide, of_entities):
        with pytest.raises(ValueError, match="no value"):
            asked(table, index)


def test_an_index_that_disagrees_with_its_rows_is_found() -> None:
    table = Table({("ada", 0): b"q"}, -1)
    made = table.make_index(BY_VALUE, ("ada",), 4)
    assert isinstance(made, SortedIndex)
    made.move(("ada", 9), None, b"a")
    with pytest.raises(AssertionError, match="index 'by value' of 'cart/items' is not that of its rows"):
        table.check_indexes(4)


def test_another_version_of_the_app_has_other_indexes() -> None:
    table = Table({("ada", 0): b"q"}, -1)
    table.declare(DECLARED, 4)
    assert asked(table, KEYS) == [("ada", 0)]
    table.declare(DECLARED, 4)
    assert table.index(-1, KEYS, ("ada",)) is not None, "the same version"
    table.declare((KEYS,), 4)
    assert table.index(-1, KEYS, ("ada",)) is None
    assert table.replaced({("ada", 0): b"r"}).index(-1, KEYS, ("ada",)) is None

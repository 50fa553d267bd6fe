"""What queries see of rows that are not committed yet."""

from __future__ import annotations

from styx.relational.index_range import IndexRange
from styx.worker.written_rows import WrittenRows
from tests.worker.test_row_cell import BY_VALUE, LOW, ROWS


def rows_in(rows: WrittenRows, wanted: IndexRange) -> list[int]:
    return sorted(key[1] for _, key, _ in rows.of(BY_VALUE, 4).between(wanted))


def test_the_last_write_of_a_row_counts() -> None:
    rows = WrittenRows()
    rows.add({(ROWS, ("ada", 1)): b"a", (ROWS, ("ada", 2)): b"b", (ROWS, ("bob", 3)): b"a", ("cart", "ada"): b"a"})
    assert rows_in(rows, LOW) == [1, 2]
    rows.add({(ROWS, ("ada", 1)): b"x"})
    rows.add({(ROWS, ("ada", 4)): b"b"})
    assert rows_in(rows, LOW) == [2, 4]


def test_all_rows_that_were_written_hide_what_is_committed() -> None:
    rows = WrittenRows()
    rows.add({(ROWS, ("ada", 1)): b"a", (ROWS, ("ada", 2)): None})
    rows.add({(ROWS, ("ada", 1)): None})
    assert rows_in(rows, LOW) == []
    assert set(rows.of(BY_VALUE, 4).rows) == {("ada", 1), ("ada", 2)}


def test_a_deleted_row_may_come_back() -> None:
    rows = WrittenRows()
    rows.add({(ROWS, ("ada", 1)): None})
    assert rows_in(rows, LOW) == []
    rows.add({(ROWS, ("ada", 1)): b"b"})
    assert rows_in(rows, LOW) == [1]

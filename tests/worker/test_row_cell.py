"""A row as a transaction's branches see it: whose writes a query meets, in whatever order they arrive."""

from __future__ import annotations

import pytest

from styx.relational.index_range import Group, IndexRange, Position, RowKey, TableIndex
from styx.state.slot_state import SlotState
from styx.state.table import Table
from styx.worker.footprint import Footprint, RowCell
from styx.worker.slot import Slot
from tests.worker.test_footprint import footprint

ROWS = "cart/items"


class ByValue(TableIndex):
    """Rows by their value, which is one byte."""

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        return (key[0],), (data, key[1])


BY_VALUE = ByValue(ROWS, 1, "by value")
LOW = IndexRange(BY_VALUE, ("ada",), (b"a",), (b"c",))


def transaction(rows: dict[RowKey, bytes]) -> tuple[Footprint, RowCell]:
    """One transaction on a slot with these rows, and its cell of the row 1."""
    made = footprint()
    slot = Slot(0, SlotState({ROWS: Table(rows, -1)}), -1)
    made.here = slot
    cell = slot.cell(made, ROWS, ("ada", 1))
    assert isinstance(cell, RowCell)
    return made, cell


@pytest.mark.parametrize("order", [["scan", "in", "out"], ["in", "scan", "out"], ["in", "out", "scan"]])
def test_a_value_that_its_branch_writes_over_collides_with_a_query_whichever_comes_first(order: list[str]) -> None:
    made, cell = transaction({})
    for step in order:
        if step == "scan":
            cell.scan(made, LOW, b"\0\1")
        else:
            cell.write(b"\0\0", b"b" if step == "in" else b"x")
    assert made.collided


@pytest.mark.parametrize("scan_first", [True, False])
def test_a_row_that_was_never_in_the_range_does_not_collide(scan_first: bool) -> None:
    made, cell = transaction({("ada", 1): b"y"})
    if scan_first:
        cell.scan(made, LOW, b"\0\1")
    cell.write(b"\0\0", b"x")
    cell.write(b"\0\0", b"z")
    if not scan_first:
        cell.scan(made, LOW, b"\0\1")
    assert not made.collided

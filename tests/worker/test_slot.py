"""A slot's indexes: made when the first query asks, on nobody's time."""

from __future__ import annotations

from typing import Any

import pytest

from styx.relational.index_range import Group, Position, RowKey, TableIndex
from styx.state.slot_state import SlotState
from styx.state.table import Table
from styx.worker.invocation import Running
from styx.worker.slot import Slot
from tests.plain_form import plain_form

ROWS = "cart/items"


class Noted(TableIndex):
    """Rows by key; notes whose code runs meanwhile. A row without a value breaks it."""

    def __init__(self, running: Running) -> None:
        super().__init__(ROWS, 0, "keys")
        self.running = running
        self.invocations: list[Any] = []

    def entry(self, key: RowKey, data: bytes, n_slots: int) -> tuple[Group, Position] | None:
        self.invocations.append(self.running.invocation)
        if not data:
            raise ValueError("no value")
        return key[:1], key[1:]


def slot_of(rows: dict[Any, bytes]) -> tuple[Slot, Running]:
    slot, running = Slot(0, SlotState({ROWS: Table(rows, 3)}), 3), Running()
    slot.running = running
    return slot, running


@plain_form
def test_an_index_is_made_once_and_the_function_that_asks_is_not_charged() -> None:
    slot, running = slot_of({("ada", 1): b"x"})
    asking: Any = object()
    running.invocation = asking
    index = Noted(running)
    made = slot.index_of(index, ("ada",), 4)
    assert slot.index_of(index, ("ada",), 4) is made
    assert index.invocations == [None]
    assert running.invocation is asking
    assert running.resumed == 1


@plain_form
def test_an_index_that_cannot_be_made_is_the_askers_error_each_time() -> None:
    slot, running = slot_of({("ada", 1): b""})
    asking: Any = object()
    running.invocation = asking
    for _ in range(2):
        with pytest.raises(ValueError, match="no value"):
            slot.index_of(Noted(running), ("ada",), 4)
        assert running.invocation is asking


def test_commits_of_the_epoch_are_in_the_index() -> None:
    slot, running = slot_of({("ada", 1): b"x"})
    index = Noted(running)
    slot.index_of(index, ("ada",), 4)
    slot.epoch = 4
    slot.table(ROWS).write(4, ("ada", 0), b"y")
    assert [key for _, key in slot.index_of(index, ("ada",), 4).walk(("ada",), (), (9,))] == [("ada", 0), ("ada", 1)]

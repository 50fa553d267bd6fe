"""Transaction ids: one residue class a slot, so that nobody has to ask anybody for the next one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.model.limits import TID_MAX
from styx.sequencer.tid import slot_of, tid


def test_slots_take_turns() -> None:
    assert [tid(slot, 0, 3) for slot in range(3)] == [1, 2, 3]
    assert [tid(slot, 1, 3) for slot in range(3)] == [4, 5, 6]
    assert [tid(0, counter, 1) for counter in range(3)] == [1, 2, 3]


@given(st.integers(1, 1_000), st.data())
def test_a_tid_tells_its_slot(n_slots: int, data: st.DataObject) -> None:
    slot = data.draw(st.integers(0, n_slots - 1))
    counter = data.draw(st.integers(0, 2**50))
    assert slot_of(tid(slot, counter, n_slots), n_slots) == slot


@given(st.integers(1, 64), st.integers(0, 2**40), st.data())
def test_every_tid_of_a_later_counter_is_greater(n_slots: int, counter: int, data: st.DataObject) -> None:
    early, late = (data.draw(st.integers(0, n_slots - 1)) for _ in range(2))
    assert tid(early, counter, n_slots) < tid(late, counter + 1, n_slots)


def test_the_last_tid_is_64_bits_signed() -> None:
    assert tid(0, TID_MAX - 1, 1) == TID_MAX
    with pytest.raises(AssertionError, match="exhausted"):
        tid(0, TID_MAX, 1)

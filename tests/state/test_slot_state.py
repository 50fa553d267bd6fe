"""A slot's state and its delta: the same values, and no change falls between two snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.state.slot_state import IDEMPOTENCY_TABLE, Delta, SlotState, from_changes, holdings, merge_into
from styx.state.table import NEWEST, Table

Write = tuple[str, int, bytes | None]
writes = st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.none() | st.binary(max_size=2))


def apply(state: SlotState, operator: str, key: object, value: bytes | None) -> None:
    state.table(operator).commit(0, {key: value})


def merge(deltas: list[Delta]) -> Delta:
    """One delta with the effect of `deltas` applied oldest first; deletions are kept."""
    merged: Delta = {}
    for delta in deltas:
        merge_into(merged, delta)
    return merged


def test_writes_during_an_upload_belong_to_the_next_one() -> None:
    state = SlotState()
    apply(state, "operator", 1, b"one")
    uploading = state.take_delta()
    apply(state, "operator", 2, b"two")
    assert uploading == {"operator": {1: b"one"}}
    state.delta_stored()
    assert state.take_delta() == {"operator": {2: b"two"}}


def test_a_failed_upload_goes_under_the_newer_changes() -> None:
    state = SlotState()
    apply(state, "operator", 1, b"old")
    apply(state, "operator", 2, b"kept")
    state.take_delta()
    apply(state, "operator", 1, b"new")
    state.delta_failed()
    assert state.take_delta() == {"operator": {1: b"new", 2: b"kept"}}


def test_an_end_of_no_upload_changes_nothing() -> None:
    state = SlotState()
    apply(state, "operator", 1, b"one")
    state.delta_failed()
    state.delta_stored()
    assert state.take_delta() == {"operator": {1: b"one"}}


def test_two_uploads_at_once_are_refused() -> None:
    state = SlotState()
    state.take_delta()
    with pytest.raises(AssertionError, match="still being stored"):
        state.take_delta()


@given(st.lists(st.one_of(writes, st.sampled_from(["take", "stored", "failed"]))))
def test_stored_deltas_give_the_state_whatever_uploads_failed(script: list[Write | str]) -> None:
    state = SlotState()
    stored: list[Delta] = []
    for step in script:
        if isinstance(step, tuple):
            apply(state, *step)
        elif step == "take" and state.uploading is None:
            state.take_delta()
        elif step == "stored" and state.uploading is not None:
            stored.append(state.uploading)
            state.delta_stored()
        elif step == "failed":
            state.delta_failed()
    state.delta_failed()
    again = from_changes(merge([*stored, state.take_delta()]), 0)
    assert again.entities(0) == state.entities(0)


def test_what_was_loaded_has_not_changed_since_the_snapshot() -> None:
    state = from_changes(merge([{"operator": {2: b"a", 3: b"b"}}, {"operator": {3: None}}]), 7)
    assert state.entities(7) == {("operator", 2): b"a"}
    state.as_stored()
    assert (state.take_delta(), state.uploading) == ({}, {})
    assert state.table("operator").epoch == 7


def test_a_generation_begins_without_the_changes_of_the_one_before() -> None:
    state = SlotState()
    apply(state, "operator", 1, b"a")
    state.take_delta()
    apply(state, "operator", 1, b"b")
    state.as_stored()
    assert state.uploading is None
    assert state.take_delta() == {}


def test_remembered_replies_are_no_user_state() -> None:
    state = SlotState()
    apply(state, IDEMPOTENCY_TABLE, b"key", b"reply")
    assert (state.entities(0), state.at(0)) == ({}, {})
    assert state.take_delta() == {IDEMPOTENCY_TABLE: {b"key": b"reply"}}


@given(st.lists(st.lists(writes), max_size=4), st.integers(0, 4))
def test_merging_in_pieces_is_merging(drawn: list[list[Write]], cut: int) -> None:
    deltas: list[Delta] = []
    for group in drawn:
        delta: Delta = {}
        for operator, key, value in group:
            delta.setdefault(operator, {})[key] = value
        deltas.append(delta)
    assert merge([merge(deltas[:cut]), merge(deltas[cut:])]) == merge(deltas)


def test_merging_leaves_its_parts_alone() -> None:
    older: Delta = {"operator": {1: b"old"}}
    merge([older, {"operator": {1: b"new"}}])
    assert older == {"operator": {1: b"old"}}


def test_a_copy_of_everything_stays_as_it_is() -> None:
    state = SlotState()
    apply(state, "operator", 1, b"a")
    apply(state, IDEMPOTENCY_TABLE, b"key", b"reply")
    copied = state.copied()
    apply(state, "operator", 1, b"b")
    apply(state, "operator", 2, b"c")
    assert copied == {"operator": {1: b"a"}, IDEMPOTENCY_TABLE: {b"key": b"reply"}}


def test_converted_entities_leave_the_state_that_they_were_as_it_is() -> None:
    old = SlotState({"one": Table({1: b"old", 2: b"kept"}, 3), "other": Table({1: b"x"}, 3)})
    new = old.replaced({"one": {1: b"new"}})
    assert new.entities(NEWEST) == {("one", 1): b"new", ("one", 2): b"kept", ("other", 1): b"x"}
    assert old.entities(NEWEST)["one", 1] == b"old"
    assert (new.converted, old.converted) == (True, False)


def test_an_operator_with_sequences_alone_holds_something() -> None:
    state = SlotState()
    apply(state, "shop/<sequences>", ("a", "bills"), b"\x01")
    assert holdings([state]) == (0, ["shop"])
    apply(state, "shop", "a", b"\x01")
    assert holdings([state]) == (1, ["shop"])

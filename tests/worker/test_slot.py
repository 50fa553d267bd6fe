"""A slot's state and its delta: the same values, and no change falls between two snapshots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.worker.slot import IDEMPOTENCY_TABLE, Delta, Slot, merge, tables_of

Write = tuple[str, int, bytes | None]
writes = st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.none() | st.binary(max_size=2))


def test_a_write_is_in_the_table_and_in_the_delta() -> None:
    slot = Slot(0)
    slot.apply("operator", 1, b"one")
    assert slot.table("operator") == {1: b"one"}
    assert slot.delta == {"operator": {1: b"one"}}


def test_a_deletion_empties_the_table_and_stays_in_the_delta() -> None:
    slot = Slot(0)
    slot.apply("operator", 1, b"one")
    slot.apply("operator", 1, None)
    slot.apply("operator", 2, None)
    assert slot.table("operator") == {}
    assert slot.delta == {"operator": {1: None, 2: None}}


def test_writes_during_an_upload_belong_to_the_next_one() -> None:
    slot = Slot(0)
    slot.apply("operator", 1, b"one")
    uploading = slot.take_delta()
    slot.apply("operator", 2, b"two")
    assert (uploading, slot.delta) == ({"operator": {1: b"one"}}, {"operator": {2: b"two"}})
    slot.delta_stored()
    assert slot.take_delta() == {"operator": {2: b"two"}}


def test_a_failed_upload_goes_under_the_newer_changes() -> None:
    slot = Slot(0)
    slot.apply("operator", 1, b"old")
    slot.apply("operator", 2, b"kept")
    slot.take_delta()
    slot.apply("operator", 1, b"new")
    slot.delta_failed()
    assert slot.take_delta() == {"operator": {1: b"new", 2: b"kept"}}


def test_an_end_of_no_upload_changes_nothing() -> None:
    slot = Slot(0)
    slot.apply("operator", 1, b"one")
    slot.delta_failed()
    slot.delta_stored()
    assert slot.delta == {"operator": {1: b"one"}}


def test_two_uploads_at_once_are_refused() -> None:
    slot = Slot(0)
    slot.take_delta()
    with pytest.raises(AssertionError, match="still being stored"):
        slot.take_delta()


@given(st.lists(st.one_of(writes, st.sampled_from(["take", "stored", "failed"]))))
def test_stored_deltas_give_the_state_whatever_uploads_failed(
    script: list[Write | str],
) -> None:
    slot = Slot(0)
    stored: list[Delta] = []
    for step in script:
        if isinstance(step, tuple):
            slot.apply(*step)
        elif step == "take" and slot.uploading is None:
            slot.take_delta()
        elif step == "stored" and slot.uploading is not None:
            stored.append(slot.uploading)
            slot.delta_stored()
        elif step == "failed":
            slot.delta_failed()
    slot.delta_failed()
    again = Slot(0)
    again.load(tables_of(merge([*stored, slot.delta])))
    assert again.user_state() == slot.user_state()


def test_loading_replaces_everything() -> None:
    slot = Slot(0)
    slot.apply("operator", 1, b"gone")
    slot.take_delta()
    slot.load(tables_of(merge([{"operator": {2: b"a", 3: b"b"}}, {"operator": {3: None}}])))
    assert slot.user_state() == {("operator", 2): b"a"}
    assert slot.delta == {}
    assert slot.uploading is None


def test_remembered_replies_are_no_user_state() -> None:
    slot = Slot(0)
    slot.apply(IDEMPOTENCY_TABLE, b"key", b"reply")
    assert slot.user_state() == {}
    assert slot.delta == {IDEMPOTENCY_TABLE: {b"key": b"reply"}}


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
    slot = Slot(0)
    slot.apply("operator", 1, b"a")
    slot.apply(IDEMPOTENCY_TABLE, b"key", b"reply")
    copied = slot.copied()
    slot.apply("operator", 1, b"b")
    slot.apply("operator", 2, b"c")
    assert copied == {"operator": {1: b"a"}, IDEMPOTENCY_TABLE: {b"key": b"reply"}}

"""Snapshot objects come back as they were, and any change to them is noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.snapshot.part import (
    ObjectCorrupt,
    decode_delta,
    encode_delta,
    object_name,
    reference,
    written_at,
)
from styx.state.slot_state import Delta

scalars = st.text(max_size=3) | st.integers(-(2**63), 2**63 - 1)
keys = scalars | st.tuples(scalars, scalars) | st.binary(max_size=3)
deltas: st.SearchStrategy[Delta] = st.dictionaries(
    st.text(min_size=1, max_size=3), st.dictionaries(keys, st.none() | st.binary(max_size=4), min_size=1), max_size=3
)


@given(deltas)
def test_a_delta_comes_back_with_its_key_types(delta: Delta) -> None:
    data = encode_delta(delta)
    assert decode_delta(reference("name", data), data) == delta


def test_tables_without_a_change_take_no_room() -> None:
    assert encode_delta({"operator": {}}) == encode_delta({})


def test_any_flipped_bit_is_noticed() -> None:
    data = encode_delta({"operator": {"key": b"value", ("a", 1): None}})
    ref = reference("slots/0/object", data)
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(ObjectCorrupt, match="slots/0/object"):
                decode_delta(ref, bytes(damaged))


def test_any_truncation_or_extension_is_noticed() -> None:
    data = encode_delta({"operator": {"key": b"value"}})
    ref = reference("name", data)
    for damaged in [data + b"\0", *(data[:length] for length in range(len(data)))]:
        with pytest.raises(ObjectCorrupt, match="is damaged"):
            decode_delta(ref, damaged)


def test_another_good_object_is_not_this_one() -> None:
    one, other = encode_delta({"operator": {"key": b"1"}}), encode_delta({"operator": {"key": b"2"}})
    with pytest.raises(ObjectCorrupt):
        decode_delta(reference("one", one), other)


def test_an_older_format_is_named_as_such() -> None:
    data = encode_delta({"operator": {"key": b"value"}})
    older = b"STYXDLT2" + data[8:]
    with pytest.raises(ObjectCorrupt, match="written by an older version of styx"):
        decode_delta(reference("name", data), older)


def test_names_sort_by_epoch_and_are_unique() -> None:
    drawn = [
        (worker, generation, epoch, number)
        for epoch in (3, 20, 100)
        for generation in (1, 2, 11)
        for worker in (0, 9)
        for number in (0, 1)
    ]
    names = [object_name(*each) for each in drawn]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
    assert [written_at(name) for name in names] == [(epoch, generation) for _, generation, epoch, _ in drawn]

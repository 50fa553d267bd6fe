"""Ids of what functions leave for later: they sort in the serial order, and none is made twice."""

from __future__ import annotations

from itertools import product

from styx.model.agenda import FIRST_RUN, LOCAL_PART, LOCK_PHASE
from styx.model.serial_id import entry_id, event_id


def test_ids_sort_as_their_givers_were_serialized() -> None:
    places = [
        (1, FIRST_RUN, 9, b"", 1),
        (1, FIRST_RUN, 9, b"", 2),
        (1, FIRST_RUN, 9, b"\x00\x00", 1),
        (1, FIRST_RUN, 12, b"", 1),
        (1, LOCK_PHASE, 3, b"", 1),
        (1, LOCK_PHASE, 9, b"", 1),
        (1, LOCAL_PART, 2, b"", 1),
        (2, FIRST_RUN, 5, b"", 1),
        (300, FIRST_RUN, 1, b"", 1),
    ]
    ids = [entry_id(*place) for place in places]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_ids_of_long_call_paths_fit_a_request_id() -> None:
    long, longer = entry_id(1, FIRST_RUN, 1, bytes(2_000), 1), entry_id(1, FIRST_RUN, 1, bytes(2_002), 1)
    assert long != longer
    assert len(long) < 200


def test_an_id_is_of_the_transaction_that_is_asked_for_whichever_was_before() -> None:
    for first, second in product(product((1, 2), (FIRST_RUN, LOCK_PHASE), (3, 2**63 - 1)), repeat=2):
        for epoch, part, tid in (first, second, first):
            begin = f"{epoch:012x}{part}{tid:016x}"
            assert event_id(epoch, part, tid, b"\x00\x00\x00\x0a\x00\x00", 1) == f"{begin}.0a100.00000001"
            assert entry_id(epoch, part, tid, b"\x00\x0a", 1) == f"{begin}000a.00000001"


def test_numbers_have_eight_digits() -> None:
    for number in (0, 1, 255, 256, 2**31):
        assert event_id(0, FIRST_RUN, 0, b"", number).rpartition(".")[2] == f"{number:08x}"

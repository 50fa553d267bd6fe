"""Batches come back as they went in, are cut at their limits, and show any change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from styx.log.base import Stream
from styx.log.batch import BATCH_BYTES_MAX, BATCH_RECORDS_MAX, BatchDamaged, decode, encode, stored
from styx.log.tail import Run


def run_of(payloads: list[bytes], first_offset: int = 0) -> Run:
    return Run(Stream.REPLIES, 3, first_offset, list(range(len(payloads))), payloads)


@given(st.lists(st.binary(max_size=20), min_size=1), st.integers(0, 2**40))
def test_records_survive_the_round_trip(payloads: list[bytes], first_offset: int) -> None:
    [batch] = encode([run_of(payloads, first_offset)], 1)
    assert [record.payload for record in decode(batch)] == payloads
    assert [record.offset for record in decode(batch)] == list(range(first_offset, first_offset + len(payloads)))
    assert [record.timestamp_us for record in decode(batch)] == list(range(len(payloads)))


def test_lsns_go_on_from_run_to_run() -> None:
    batches = encode([run_of([b"a", b"b"]), run_of([b"c"])], 10)
    assert [batch.last_lsn for batch in batches] == [11, 12]


@pytest.mark.parametrize(
    ("payloads", "lengths"),
    [
        ([b""] * (2 * BATCH_RECORDS_MAX + 1), [BATCH_RECORDS_MAX, BATCH_RECORDS_MAX, 1]),
        ([b""] * BATCH_RECORDS_MAX, [BATCH_RECORDS_MAX]),
        ([bytes(BATCH_BYTES_MAX // 2)] * 5, [2, 2, 1]),
        ([b"a", bytes(2 * BATCH_BYTES_MAX), b"b"], [1, 1, 1]),
    ],
)
def test_long_runs_are_cut_without_a_gap(payloads: list[bytes], lengths: list[int]) -> None:
    batches = encode([run_of(payloads)], 1)
    assert [batch.n_records for batch in batches] == lengths
    decoded = [record for batch in batches for record in decode(batch)]
    assert [record.offset for record in decoded] == list(range(len(payloads)))
    assert [record.payload for record in decoded] == payloads
    assert batches[-1].last_lsn == len(payloads)


def test_any_changed_column_is_noticed() -> None:
    [batch] = encode([run_of([b"abc", b"de"])], 1)
    for field in ("stream", "partition", "first_offset", "n_records", "last_lsn", "checksum"):
        with pytest.raises(BatchDamaged):
            decode(batch._replace(**{field: getattr(batch, field) ^ 1}))
    with pytest.raises(BatchDamaged, match="out of its range"):
        decode(batch._replace(n_records=-1))
    for number in range(len(batch)):
        with pytest.raises(BatchDamaged, match="not of its type"):
            stored((*batch[:number], "text", *batch[number + 1 :]))
    assert stored(tuple(batch)) == batch


def test_any_changed_byte_is_noticed() -> None:
    [batch] = encode([run_of([b"abc", b"de"])], 1)
    for position in range(len(batch.body)):
        body = bytearray(batch.body)
        body[position] ^= 16
        with pytest.raises(BatchDamaged, match="records 0 to 1 does not match"):
            decode(batch._replace(body=bytes(body)))

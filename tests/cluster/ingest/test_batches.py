"""Cutting records into batches: all of them, in order, within bounds, and without a gap between two batches."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from styx.cluster.ingest.batches import BATCH_BYTES_MAX, cut, record_bytes_max
from styx.model.ingest_position import BATCH_RECORDS_MAX
from styx.model.limits import Limits
from styx.model.request import encode_arguments
from tests.cluster.ingest.fake_source import FakeRecord

BYTES_MAX = record_bytes_max(Limits())


def records_of(sizes: list[int], gaps: list[int]) -> list[Any]:
    offset, found = 10, []
    for size, gap in zip(sizes, gaps, strict=True):
        offset += gap
        found.append(FakeRecord(offset, 0, b"k", b"v" * size, (("h", b"1"),)))
        offset += 1
    return found


@given(st.lists(st.tuples(st.sampled_from([0, 1, 100, 50_000, 300_000, 2_000_000]), st.integers(0, 3)), max_size=30))
def test_batches_have_all_records_once(drawn: list[tuple[int, int]]) -> None:
    records = records_of([each[0] for each in drawn], [each[1] for each in drawn])
    batches = list(cut("t1", 10, records, BYTES_MAX))
    assert [each.offset for batch in batches for each in batch.records] == [each.offset for each in records]
    at = 10
    for batch in batches:
        assert batch.begin == at
        at = batch.end
        assert batch.records[-1].offset == at - 1
        size = len(encode_arguments((batch,)))
        assert size <= Limits().request_bytes_max - 1_024
        assert len(batch.records) == 1 or size <= BATCH_BYTES_MAX + BATCH_RECORDS_MAX * 64
    assert not records or at == records[-1].offset + 1


def test_a_batch_has_so_many_records_at_most() -> None:
    batches = list(cut("t1", 10, records_of([1] * 1_100, [0] * 1_100), BYTES_MAX))
    assert [len(each.records) for each in batches] == [500, 500, 100]


def test_a_record_without_room_is_cut_and_says_so() -> None:
    (batch,) = cut("t1", 10, records_of([5_000_000], [0]), BYTES_MAX)
    (record,) = batch.records
    assert record.too_large > 5_000_000
    assert len(record.value or b"") == 1_024
    assert record.headers == []


def test_a_record_comes_as_it_stands_in_the_topic() -> None:
    record = FakeRecord(10, 7, None, None, (("a", None), ("a", b"\xff")))
    (batch,) = cut("t1", 10, [record], BYTES_MAX)  # type: ignore[list-item]  # its fields cannot be set
    (sent,) = msgspec.msgpack.decode(msgspec.msgpack.encode(batch), type=type(batch)).records
    assert (sent.key, sent.value, sent.headers, sent.time_ms) == (None, None, [("a", None), ("a", b"\xff")], 7)


def test_small_limits_leave_room_for_a_beginning() -> None:
    assert record_bytes_max(Limits(request_bytes_max=1)) == 1_024

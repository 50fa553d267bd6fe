"""Taking apart what was fetched: what a stranger's batch, which a broker takes as it is, may cost."""

from __future__ import annotations

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from styx.kafka.fetch import Chunk, Damaged

_CRC_AT = 17
_ATTRIBUTES_AT = 21
_RECORDS_AT = 61
_NAME = "name"


def batch(first: int, count: int, *, transactional: bool = False) -> bytearray:
    """Records at the offsets from `first` on, each with its number as its value and a header."""
    builder = DefaultRecordBatchBuilder(2, 0, int(transactional), -1, -1, -1, 1 << 20)
    for number in range(count):
        builder.append(number, 1_000, None, b"%d" % number, [(_NAME, b"x")])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, first)
    return data


def sealed(data: bytearray) -> bytes:
    """With the checksum that it should have."""
    struct.pack_into(">I", data, _CRC_AT, calc_crc32c(bytes(data[_ATTRIBUTES_AT:])))
    return bytes(data)


def with_strange_header(data: bytearray, number: int) -> bytes:
    """The name of a record's header is no UTF-8."""
    at = -1
    for _ in range(number + 1):
        at = data.index(_NAME.encode(), at + 1)
    data[at] = 0xFF
    return sealed(data)


def with_offset_delta(data: bytearray, delta: int) -> bytes:
    """The first record says that it stands somewhere else; `delta` is below 64."""
    data[_RECORDS_AT + 3] = 2 * delta
    return sealed(data)


def read(data: bytes, position: int) -> list[tuple[int, bytes | None, int]]:
    records = Chunk(0, 100, data).records(position)
    return [(record.offset, record.value, record.timestamp) for record in records]


def test_a_record_that_cannot_be_read_costs_the_rest_of_its_batch() -> None:
    data = with_strange_header(batch(10, 3), 1) + sealed(batch(13, 1))
    assert read(data, 10) == [(10, b"0", 1_000), (11, None, 1_000), (12, None, 1_000), (13, b"0", 1_000)]
    assert [offset for offset, *_ in read(data, 12)] == [12, 13]
    assert Chunk(0, 100, data).next_offset(10) == 14


@pytest.mark.parametrize("delta", [1, 2, 40])
def test_a_record_with_the_offset_of_another_one(delta: int) -> None:
    data = with_offset_delta(batch(10, 2), delta) + sealed(batch(12, 1))
    offsets = [offset for offset, *_ in read(data, 10)]
    assert offsets == sorted(set(offsets))
    assert offsets[-1] == 12


def test_gaps_are_fine() -> None:
    """A compacted topic has them."""
    assert read(with_offset_delta(batch(10, 1), 0), 5) == [(10, b"0", 1_000)]
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for number in (0, 2):
        builder.append(number, 1_000, None, b"%d" % number, [])
    assert [offset for offset, *_ in read(bytes(builder.build()), 0)] == [0, 2]


def test_what_only_the_engine_appends_is_damaged() -> None:
    chunk = Chunk(0, 100, with_strange_header(batch(10, 3, transactional=True), 1))
    with pytest.raises(Damaged, match="utf-8"):
        list(chunk.records(10, lambda offset: None))
    with pytest.raises(Damaged, match="has a record at offset 50"):
        list(Chunk(0, 100, with_offset_delta(batch(10, 1, transactional=True), 40)).records(10, lambda offset: None))


def test_a_wrong_checksum_is_damage() -> None:
    data = batch(10, 3)
    data[-1] ^= 1
    with pytest.raises(Damaged, match="checksum"):
        read(bytes(data), 10)

"""Fetch and produce requests as bytes: the same as aiokafka's schemas make of them, and read as these would.

Taking apart what was fetched: what a stranger's batch, which a broker takes as it is, may cost.
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any

import pytest
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v10, FetchResponse_v10
from aiokafka.protocol.produce import ProduceRequest, ProduceRequest_v7, ProduceResponse_v7
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c

from styx.kafka.wire import FETCH_VERSION, PRODUCE_VERSION, Chunk, Damaged, Fetch, Fetched, Produce, Produced

OURS = {0: (3, 13), 1: (4, 17)}
"""The versions of a broker that knows those that are written here."""
FETCH = (500, 1, 1_000_000, 0, [("requests", [(0, 7, 1000), (3, 2**40, 2000)]), ("ü", [])])
PRODUCE: Any = ("worker-0", -1, 15_000, [("replies", [(5, b"one"), (6, bytearray(b"two"))]), ("epochs", [(0, b"")])])


_CRC_AT = 17
_ATTRIBUTES_AT = 21
_RECORDS_AT = 61
_NAME = "name"


def encoded(request: Any, versions: dict[int, tuple[int, int]] = OURS) -> bytes:
    """Header and body, as aiokafka's connection sends them."""
    prepared = request.prepare(versions)
    header = prepared.build_request_header(correlation_id=77, client_id="styx")
    return bytes(header.encode() + prepared.encode())


def test_fetch_is_what_the_schema_says() -> None:
    assert FETCH_VERSION == FetchRequest_v10.API_VERSION
    assert encoded(Fetch(*FETCH)) == encoded(FetchRequest(*FETCH), {1: (10, 10)})


@pytest.mark.parametrize(
    ("named", "left", "forgotten"), [([(0, 7, 1000)], [], []), ([], [3, 4], [("requests", [3, 4])]), ([], [], [])]
)
def test_a_fetch_of_a_session_is_what_the_schema_says(
    named: list[tuple[int, int, int]], left: list[int], forgotten: list[Any]
) -> None:
    ours = Fetch(500, 1, 1_000_000, 0, [("requests", named)])
    ours.session = (17, 3, left)
    theirs = FetchRequest_v10(-1, 500, 1, 1_000_000, 0, 17, 3, [], forgotten)
    if named:
        theirs = FetchRequest_v10(-1, 500, 1, 1_000_000, 0, 17, 3, [("requests", [(0, -1, 7, -1, 1000)])], forgotten)
    assert ours.prepare(OURS).encode() == theirs.encode()


def test_a_whole_message() -> None:
    data = encoded(Fetch(*FETCH))
    assert Fetch(*FETCH).prepare(OURS).message(77, "styx") == len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize("transaction", ["worker-0", None])
def test_produce_is_what_the_schema_says(transaction: str | None) -> None:
    assert PRODUCE_VERSION == ProduceRequest_v7.API_VERSION
    request = (transaction, *PRODUCE[1:])
    assert encoded(Produce(*request)) == encoded(ProduceRequest(*request), {0: (7, 7)})


def test_what_was_fetched_is_read() -> None:
    partitions = [
        (0, 0, 9, 9, 0, [(1, 2), (3, 4)], b"records"),
        (1, 1, -1, -1, -1, None, b""),
        (2, 0, 9, 8, 0, [], None),
    ]
    answer = FetchResponse_v10(0, 70, 5, [("requests", partitions), ("ü", [])]).encode()
    fetched = Fetched.decode(BytesIO(answer))
    assert fetched.topics == [
        ("requests", [(0, 0, 9, b"records"), (1, 1, -1, b""), (2, 0, 9, b"")]),
        ("ü", []),
    ]
    assert (fetched.code, fetched.session) == (70, 5)


def test_what_was_produced_is_read() -> None:
    answer = ProduceResponse_v7([("replies", [(5, 0, 2**40, -1, 0), (6, 47, -1, -1, -1)]), ("epochs", [])], 0).encode()
    assert Produced.decode(BytesIO(answer)).topics == [("replies", [(5, 0, 2**40), (6, 47, -1)]), ("epochs", [])]


def test_the_answer_is_known_by_its_number() -> None:
    prepared = Fetch(*FETCH).prepare(OURS)
    assert prepared.parse_response_header(BytesIO(b"\0\0\0\x4dand more")).correlation_id == 77
    assert prepared.RESPONSE_TYPE is Fetched


@pytest.mark.parametrize(
    ("request_", "versions", "version"), [(Fetch(*FETCH), {1: (4, 9)}, 9), (Produce(*PRODUCE), {0: (3, 6)}, 6)]
)
def test_other_brokers_get_aiokafkas(request_: Any, versions: dict[int, tuple[int, int]], version: int) -> None:
    assert version == request_.prepare(versions).API_VERSION


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

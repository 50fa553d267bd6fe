"""Fetch and produce requests as bytes: the same as aiokafka's schemas make of them, and read as these would."""

from io import BytesIO
from typing import Any

import pytest
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v10, FetchResponse_v10
from aiokafka.protocol.produce import ProduceRequest, ProduceRequest_v7, ProduceResponse_v7

from styx.kafka.wire import FETCH_VERSION, PRODUCE_VERSION, Fetch, Fetched, Produce, Produced

OURS = {0: (3, 13), 1: (4, 17)}
"""The versions of a broker that knows those that are written here."""
FETCH = (500, 1, 1_000_000, 0, [("requests", [(0, 7, 1000), (3, 2**40, 2000)]), ("ü", [])])
PRODUCE: Any = ("worker-0", -1, 15_000, [("replies", [(5, b"one"), (6, bytearray(b"two"))]), ("epochs", [(0, b"")])])


def encoded(request: Any, versions: dict[int, tuple[int, int]] = OURS) -> bytes:
    """Header and body, as aiokafka's connection sends them."""
    prepared = request.prepare(versions)
    header = prepared.build_request_header(correlation_id=77, client_id="styx")
    return bytes(header.encode() + prepared.encode())


def test_fetch_is_what_the_schema_says() -> None:
    assert FETCH_VERSION == FetchRequest_v10.API_VERSION
    assert encoded(Fetch(*FETCH)) == encoded(FetchRequest(*FETCH), {1: (10, 10)})


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
    answer = FetchResponse_v10(0, 0, 0, [("requests", partitions), ("ü", [])]).encode()
    assert Fetched.decode(BytesIO(answer)).topics == [
        ("requests", [(0, 0, 9, b"records"), (1, 1, -1, b""), (2, 0, 9, b"")]),
        ("ü", []),
    ]


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

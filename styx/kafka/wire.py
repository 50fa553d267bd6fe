"""Fetch and produce requests, written and read as the bytes they are on the wire.

aiokafka interprets a schema for each field of each request, which costs several times as much as the rest of an
exchange. One version of each is known here, from Kafka 2.1 on; a broker without that version gets aiokafka's own
requests. Records are opaque.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from struct import Struct
from typing import Any, Final, NamedTuple, TypeVar

from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.produce import ProduceRequest

P = TypeVar("P")

FETCH_VERSION: Final = 10
PRODUCE_VERSION: Final = 7

_REQUEST_HEADER: Final = Struct(">hhih")  # API key, version, correlation id, length of the client's id
_FETCH: Final = Struct(">iiiibiii")  # replica, wait, bytes at least and at most, isolation, session, its epoch, topics
_FETCHED_PARTITION: Final = Struct(">iiqqi")  # partition, leader's epoch, offset, log's start, bytes at most
_FETCH_ANSWER: Final = Struct(">ihii")  # throttled, error, session, topics
_ANSWERED_PARTITION: Final = Struct(">ihqqqi")  # partition, error, end, stable end, start, aborted transactions
_ABORTED_BYTES: Final = 16
_PRODUCE: Final = Struct(">hii")  # replicas that acknowledge, timeout, topics
_PRODUCED_PARTITION: Final = Struct(">ihqqq")  # partition, error, offset, time, log's start
_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_TWO_INTS: Final = Struct(">ii")


class _Header(NamedTuple):
    correlation_id: int


class _Bytes:
    """Something that aiokafka encodes."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def encode(self) -> bytes:
        return self._data


class _Encoded(_Bytes):
    """A request's body, as aiokafka's connection wants it."""

    __slots__ = ("RESPONSE_TYPE", "_key", "_version")

    def __init__(self, key: int, version: int, answer: type[Any], data: bytes) -> None:
        super().__init__(data)
        self._key = key
        self._version = version
        self.RESPONSE_TYPE = answer

    def build_request_header(self, *, correlation_id: int, client_id: str) -> _Bytes:
        client = client_id.encode()
        return _Bytes(_REQUEST_HEADER.pack(self._key, self._version, correlation_id, len(client)) + client)

    def parse_response_header(self, answer: BytesIO) -> _Header:
        return _Header(*_INT.unpack(answer.read(_INT.size)))


class Fetched(NamedTuple):
    """By topic: for each partition its number, an error code, its end, and what came."""

    topics: list[tuple[str, list[tuple[int, int, int, bytes]]]]

    @classmethod
    def decode(cls, answer: BytesIO) -> Fetched:
        data = answer.read()
        *_, count = _FETCH_ANSWER.unpack_from(data)
        return cls(_topics(data, _FETCH_ANSWER.size, count, _fetched_partition))


class Produced(NamedTuple):
    """By topic: for each partition its number, an error code, and the offset of the first record."""

    topics: list[tuple[str, list[tuple[int, int, int]]]]

    @classmethod
    def decode(cls, answer: BytesIO) -> Produced:
        data = answer.read()
        (count,) = _INT.unpack_from(data)
        return cls(_topics(data, _INT.size, count, _produced_partition))


class Fetch(FetchRequest):  # type: ignore[misc] # aiokafka has no types
    """Like aiokafka's. The reply is `Fetched`, or aiokafka's response, whose entries end with the same fields."""

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        low, high = versions.get(self.API_KEY, (0, 0))
        if not low <= FETCH_VERSION <= high:
            return super().prepare(versions)
        head = (-1, self._max_wait_ms, self._min_bytes, self._max_bytes, self._isolation_level, 0, -1)
        parts = [_FETCH.pack(*head, len(self._topics))]
        for topic, partitions in self._topics:
            parts += _counted(topic), _INT.pack(len(partitions))
            parts += [
                _FETCHED_PARTITION.pack(partition, -1, offset, -1, bytes_max)
                for partition, offset, bytes_max in partitions
            ]
        parts.append(_INT.pack(0))  # nothing to forget: there is no session
        return _Encoded(self.API_KEY, FETCH_VERSION, Fetched, b"".join(parts))


class Produce(ProduceRequest):  # type: ignore[misc] # as above
    """Like aiokafka's. The reply is `Produced`, or aiokafka's response, which begins with the same fields."""

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        low, high = versions.get(self.API_KEY, (0, 0))
        if not low <= PRODUCE_VERSION <= high:
            return super().prepare(versions)
        transaction = self._transactional_id
        parts = [
            _SHORT.pack(-1) if transaction is None else _counted(transaction),
            _PRODUCE.pack(self._required_acks, self._timeout, len(self._topics)),
        ]
        for topic, partitions in self._topics:
            parts += _counted(topic), _INT.pack(len(partitions))
            for partition, batch in partitions:
                parts += _TWO_INTS.pack(partition, len(batch)), batch
        return _Encoded(self.API_KEY, PRODUCE_VERSION, Produced, b"".join(parts))


def _counted(text: str) -> bytes:
    data = text.encode()
    return _SHORT.pack(len(data)) + data


def _topics(data: bytes, at: int, count: int, read: Callable[[bytes, int], tuple[P, int]]) -> list[tuple[str, list[P]]]:
    """By name, what `read` makes of each partition from some place on; it also tells the place behind."""
    topics = []
    for _ in range(count):
        (length,) = _SHORT.unpack_from(data, at)
        at += _SHORT.size
        name = data[at : at + length].decode()
        (n_partitions,) = _INT.unpack_from(data, at + length)
        at += length + _INT.size
        partitions = []
        for _ in range(n_partitions):
            partition, at = read(data, at)
            partitions.append(partition)
        topics.append((name, partitions))
    return topics


def _fetched_partition(data: bytes, at: int) -> tuple[tuple[int, int, int, bytes], int]:
    partition, code, end, _, _, aborted = _ANSWERED_PARTITION.unpack_from(data, at)
    at += _ANSWERED_PARTITION.size + _ABORTED_BYTES * max(0, aborted)
    (length,) = _INT.unpack_from(data, at)
    at += _INT.size
    behind = at + max(0, length)
    return (partition, code, end, data[at:behind]), behind


def _produced_partition(data: bytes, at: int) -> tuple[tuple[int, int, int], int]:
    partition, code, offset, _, _ = _PRODUCED_PARTITION.unpack_from(data, at)
    return (partition, code, offset), at + _PRODUCED_PARTITION.size

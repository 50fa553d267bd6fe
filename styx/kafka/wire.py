"""Kafka's wire format: produce and fetch requests, their replies, and the records that a fetch brings.

Requests are written, and replies read, as bytes: aiokafka interprets a schema for each field of each request, which
costs several times as much as the rest of an exchange. One version of each request is known here, from Kafka 2.1 on; a
broker without that version gets aiokafka's own requests.

Records come as soon as they are replicated, whether their transaction is committed or not. Control records are left
out, and leave gaps in the offsets. So are strangers' records, where only the engine appends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from struct import Struct
from typing import Any, Final, NamedTuple, TypeVar

from aiokafka.errors import CorruptRecordException
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.memory_records import MemoryRecords

P = TypeVar("P")

FETCH_VERSION: Final = 10
PRODUCE_VERSION: Final = 7

_REQUEST_HEADER: Final = Struct(">hhih")  # API key, version, correlation id, length of the client's id
_MESSAGE: Final = Struct(">ihhih")  # bytes that follow, and the same
_FETCH: Final = Struct(">iiiibiii")  # replica, wait, bytes at least and at most, isolation, session, its epoch, topics
_FETCHED_PARTITION: Final = Struct(">iiqqi")  # partition, leader's epoch, offset, log's start, bytes at most
_FETCH_ANSWER: Final = Struct(">ihii")  # throttled, error, session, topics
_ANSWERED_PARTITION: Final = Struct(">ihqqqi")  # partition, error, end, stable end, start, aborted transactions
_ABORTED_BYTES: Final = 16
_PRODUCE: Final = Struct(">hii")  # replicas that acknowledge, timeout, topics
_PRODUCED_PARTITION: Final = Struct(">ihqqq")  # partition, error, offset, time, log's start
_READ_UNCOMMITTED: Final = 0
_NO_SESSION: Final = -1
_CONTROL: Final = Struct(">hh")  # version, type
_COMMITTED: Final = 1
_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_TWO_INTS: Final = Struct(">ii")


class _Header(NamedTuple):
    correlation_id: int


class _Bytes:
    """Encoded bytes, for aiokafka's connection, which calls `encode`."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def encode(self) -> bytes:
        return self._data


class Encoded(_Bytes):
    """A request's body, as aiokafka's connection wants it, and as a whole message."""

    __slots__ = ("RESPONSE_TYPE", "_key", "_version")

    def __init__(self, key: int, version: int, answer: type[Fetched] | type[Produced], data: bytes) -> None:
        super().__init__(data)
        self._key = key
        self._version = version
        self.RESPONSE_TYPE = answer

    def message(self, correlation_id: int, client_id: str) -> bytes:
        """All bytes of the request, from the number of those that follow on."""
        client, data = client_id.encode(), self._data
        n_bytes = _REQUEST_HEADER.size + len(client) + len(data)
        head = _MESSAGE.pack(n_bytes, self._key, self._version, correlation_id, len(client))
        return b"".join((head, client, data))

    def answer(self, frame: bytes) -> Fetched | Produced:
        """The answer in a frame, whose correlation id is checked already."""
        return self.RESPONSE_TYPE.read(frame, _INT.size)

    def build_request_header(self, *, correlation_id: int, client_id: str) -> _Bytes:
        client = client_id.encode()
        return _Bytes(_REQUEST_HEADER.pack(self._key, self._version, correlation_id, len(client)) + client)

    def parse_response_header(self, answer: BytesIO) -> _Header:
        return _Header(*_INT.unpack(answer.read(_INT.size)))


def number_of(frame: bytes) -> int:
    """The correlation id of an answer."""
    number: int
    (number,) = _INT.unpack_from(frame)
    return number


class Fetched(NamedTuple):
    """By topic: for each partition its number, an error code, its end, and what came. `code` is an error of all,
    `session` the broker's number for the fetch session, 0 without one.
    """

    topics: list[tuple[str, list[tuple[int, int, int, bytes]]]]
    code: int = 0
    session: int = 0

    @classmethod
    def decode(cls, answer: BytesIO) -> Fetched:
        return cls.read(answer.read(), 0)

    @classmethod
    def read(cls, data: bytes, at: int) -> Fetched:
        """Reads an answer's body, which begins at `at`."""
        _, code, session, count = _FETCH_ANSWER.unpack_from(data, at)
        return cls(_topics(data, at + _FETCH_ANSWER.size, count, _fetched_partition), code, session)


class Produced(NamedTuple):
    """By topic: for each partition its number, an error code, and the offset of the first record."""

    topics: list[tuple[str, list[tuple[int, int, int]]]]

    @classmethod
    def decode(cls, answer: BytesIO) -> Produced:
        return cls.read(answer.read(), 0)

    @classmethod
    def read(cls, data: bytes, at: int) -> Produced:
        """Reads an answer's body, which begins at `at`."""
        (count,) = _INT.unpack_from(data, at)
        return cls(_topics(data, at + _INT.size, count, _produced_partition))


class Fetch(FetchRequest):  # type: ignore[misc] # aiokafka has no types
    """Like aiokafka's. The reply is `Fetched`, or aiokafka's response, whose entries end with the same fields.

    `session` is the fetch session: its number, its epoch and the partitions of the topic that it is to forget.
    """

    session: tuple[int, int, list[int]] = (0, _NO_SESSION, [])

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        low, high = versions.get(self.API_KEY, (0, 0))
        if not low <= FETCH_VERSION <= high:
            return super().prepare(versions)
        head = (-1, self._max_wait_ms, self._min_bytes, self._max_bytes, self._isolation_level)
        session, epoch, left = self.session
        topics = [(topic, partitions) for topic, partitions in self._topics if partitions or epoch == _NO_SESSION]
        parts = [_FETCH.pack(*head, session, epoch, len(topics))]
        for topic, partitions in topics:
            parts += _counted(topic), _INT.pack(len(partitions))
            parts += [
                _FETCHED_PARTITION.pack(partition, -1, offset, -1, bytes_max)
                for partition, offset, bytes_max in partitions
            ]
        if left:
            ((topic, _),) = self._topics
            parts += _INT.pack(1), _counted(topic), Struct(f">{1 + len(left)}i").pack(len(left), *left)
        else:
            parts.append(_INT.pack(0))
        return Encoded(self.API_KEY, FETCH_VERSION, Fetched, b"".join(parts))


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
        return Encoded(self.API_KEY, PRODUCE_VERSION, Produced, b"".join(parts))


def _counted(text: str) -> bytes:
    data = text.encode()
    return _SHORT.pack(len(data)) + data


def _topics(data: bytes, at: int, count: int, read: Callable[[bytes, int], tuple[P, int]]) -> list[tuple[str, list[P]]]:
    """By name, each partition's fields. `read` takes the data and a place; it gives the fields and the place behind."""
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


class Damaged(Exception):
    """A batch does not fit its checksum, or cannot be decoded."""


class Unreadable(NamedTuple):
    """Stands for a stranger's record that cannot be decoded, or has the offset of another record."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Chunk(NamedTuple):
    """Fetched bytes of one partition. `end` is the offset behind its last record; `code` is 0 or the broker's error."""

    code: int
    end: int
    data: bytes

    def next_offset(self, position: int) -> int:
        """The offset of the next fetch, behind all records and control records of the chunk."""
        batches = MemoryRecords(self.data)
        while batches.has_next():
            position = max(position, batches.next_batch().next_offset)
        return position

    def records(self, position: int, stranger: Callable[[int], None] | None = None) -> Iterator[Any]:
        """aiokafka's records from `position` on, verified, each offset once. Raises `Damaged`.

        With `stranger`, only records of transactions, which all records of the engine are; `stranger` gets the offset
        of each other record, and none of these is decoded. Without it, anybody may have appended. Brokers check neither
        headers nor offsets within a batch, so the rest of a batch from its first disordered record on is `Unreadable`.
        """
        for batch in self._batches():
            following, end = batch.base_offset, batch.next_offset
            if stranger is not None and not batch.is_transactional:
                for offset in range(max(position, following), end):
                    stranger(offset)
                continue
            try:
                for record in batch:
                    offset = record.offset
                    if not following <= offset < end:
                        raise Damaged(f"the batch at offset {batch.base_offset} has a record at offset {offset}")
                    following = offset + 1
                    # A batch comes whole, whatever the offset asked for.
                    if offset >= position:
                        yield record
            except Exception as error:  # noqa: BLE001 - whatever its bytes make of aiokafka's reader
                if stranger is not None:
                    raise Damaged(str(error)) from None
                for offset in range(max(position, following), end):
                    yield Unreadable(offset, batch.max_timestamp)

    def by_producer(self) -> Iterator[tuple[int, bool | None, list[Any]]]:
        """For each batch of a transaction: its producer, then None and its records, or, where a transaction of the
        producer has ended, whether it is committed. Records outside of transactions are strangers'. Raises `Damaged`.
        """
        for batch in self._batches(control=True):
            if not batch.is_transactional:
                continue
            try:
                records = list(batch)
            except Exception as error:  # noqa: BLE001 - whatever its bytes make of aiokafka's reader
                raise Damaged(str(error)) from None
            if batch.is_control_batch:
                for record in records:
                    yield batch.producer_id, _CONTROL.unpack(record.key)[1] == _COMMITTED, []
            else:
                yield batch.producer_id, None, records

    def behind_damage(self, position: int) -> int:
        """The offset behind the damaged batch at `position`; the next offset if the batch's length is not credible."""
        try:
            batches = MemoryRecords(self.data)
            while batches.has_next():
                batch = batches.next_batch()
                behind: int = batch.next_offset
                if behind > position and batch.is_control_batch and batch.validate_crc():
                    position = behind
                elif behind > position:
                    return behind if behind <= self.end else position + 1
        except Exception:  # noqa: BLE001 - whatever a damaged batch makes of its reader
            return position + 1
        return position + 1

    def _batches(self, control: bool = False) -> Iterator[Any]:
        """Whole batches, verified, those with `control` records only if they are asked for. Raises `Damaged`."""
        batches = MemoryRecords(self.data)
        try:
            while batches.has_next():
                batch = batches.next_batch()
                if not batch.validate_crc():
                    raise Damaged(f"the checksum of the batch at offset {batch.base_offset} is wrong")
                if control or not batch.is_control_batch:
                    yield batch
        except CorruptRecordException as error:
            raise Damaged(str(error)) from None


def fetch_request(
    topic: str, positions: Mapping[int, int], *, wait_ms: int, bytes_max: int, partition_bytes_max: int
) -> Fetch:
    """Asks for the records of partitions from their positions on; a broker looks at the first of `positions` first.

    The broker waits up to `wait_ms` for a first record.
    """
    wanted = [(partition, offset, partition_bytes_max) for partition, offset in positions.items()]
    return Fetch(wait_ms, 1, bytes_max, _READ_UNCOMMITTED, [(topic, wanted)])


def chunks_of(answer: Any) -> dict[int, Chunk]:
    """The chunk of each partition in the reply to a `fetch_request`."""
    return {
        entry[0]: Chunk(code=entry[1], end=entry[2], data=entry[-1] or b"")
        for _, partitions in answer.topics
        for entry in partitions
    }

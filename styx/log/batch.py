"""The record batch: consecutive records of one partition as one checksummed blob, which a disk log stores as one row.

A row for each record would be slow: SQLite gives up the interpreter lock at each row, and beside a busy engine the
writer then waits for a whole switch interval.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

from styx.log.base import Record, Stream
from styx.log.tail import Run

BATCH_RECORDS_MAX: Final = 4096
BATCH_BYTES_MAX: Final = 256 * 1024
"""Payload bytes of a batch with more than one record."""

# For more bytes zlib gives up the interpreter lock, and the wait for the lock costs far more than the checksum.
_CHECKSUM_BYTES: Final = 5 * 1024
_HEADER: Final = struct.Struct("<BQQIQ")


class Batch(NamedTuple):
    """A batch as in storage. `last_lsn` is the LSN of its last record; `body` holds timestamps, lengths, payloads."""

    stream: int
    partition: int
    first_offset: int
    n_records: int
    last_lsn: int
    checksum: int
    body: bytes

    @property
    def next_offset(self) -> int:
        return self.first_offset + self.n_records


class BatchDamaged(Exception):
    """The batch is not as it was written; the message says why."""


def encode(runs: list[Run], first_lsn: int) -> list[Batch]:
    """The batches for `runs`, with LSNs from `first_lsn` on in this order."""
    batches = []
    for run in runs:
        for piece in _split(run):
            last_lsn = first_lsn + len(piece.payloads) - 1
            batches.append(_encode(piece, last_lsn))
            first_lsn = last_lsn + 1
    return batches


def parted(run: Run, offset: int) -> list[Run]:
    """The run in two parts, the second from `offset` on; in one if a part would be empty."""
    at = offset - run.first_offset
    n_records = len(run.payloads)
    return [_slice(run, 0, at), _slice(run, at, n_records)] if 0 < at < n_records else [run]


def decode(batch: Batch) -> list[Record]:
    """The records of a batch. Raises `BatchDamaged`."""
    verify(batch)
    timestamps_us = struct.unpack_from(f"<{batch.n_records}q", batch.body)
    lengths = struct.unpack_from(f"<{batch.n_records}I", batch.body, 8 * batch.n_records)
    ends = list(accumulate(lengths, initial=12 * batch.n_records))
    payloads = [batch.body[start:end] for start, end in pairwise(ends)]
    return list(map(Record, range(batch.first_offset, batch.next_offset), timestamps_us, payloads))


def stored(row: Sequence[Any]) -> Batch:
    """The batch in a row of storage, unverified. Raises `BatchDamaged` if a column is not of its type: SQLite tells the
    types by bytes that may be damaged as well.
    """
    *numbers, body = row
    if set(map(type, numbers)) != {int} or type(body) is not bytes:
        raise BatchDamaged("a column is not of its type")
    return Batch(*row)


def verify(batch: Batch) -> None:
    """Raises `BatchDamaged` if the checksum over header and body does not match."""
    try:
        if batch.checksum == checksum(*batch[:5], batch.body):
            return
    except struct.error:
        raise BatchDamaged("a column is out of its range") from None
    raise BatchDamaged(f"the checksum of the records {batch.first_offset} to {batch.next_offset - 1} does not match")


def checksum(stream: int, partition: int, first_offset: int, n_records: int, last_lsn: int, body: bytes) -> int:
    """The checksum over all other columns."""
    found = zlib.crc32(_HEADER.pack(stream, partition, first_offset, n_records, last_lsn))
    view = memoryview(body)
    for start in range(0, len(body), _CHECKSUM_BYTES):
        found = zlib.crc32(view[start : start + _CHECKSUM_BYTES], found)
    return found


def _encode(run: Run, last_lsn: int) -> Batch:
    n_records = len(run.payloads)
    body = b"".join(
        (
            struct.pack(f"<{n_records}q", *run.timestamps_us),
            struct.pack(f"<{n_records}I", *map(len, run.payloads)),
            *run.payloads,
        )
    )
    header = (int(run.stream), run.partition, run.first_offset, n_records, last_lsn)
    return Batch(*header, checksum(*header, body), body)


def _split(run: Run) -> Iterator[Run]:
    start = size = 0
    for index, payload in enumerate(run.payloads):
        size += len(payload)
        if index > start and (size > BATCH_BYTES_MAX or index - start == BATCH_RECORDS_MAX):
            yield _slice(run, start, index)
            start, size = index, len(payload)
    yield _slice(run, start, len(run.payloads)) if start else run


def _slice(run: Run, start: int, end: int) -> Run:
    return Run(
        Stream(run.stream),
        run.partition,
        run.first_offset + start,
        run.timestamps_us[start:end],
        run.payloads[start:end],
    )

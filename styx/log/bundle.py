"""The bundle: the records of one commit, of all partitions, as one checksummed blob, which a disk log keeps as one row.

Batches of many partitions change many pages of the file, and a commit pays for each page. A bundle is written behind
the last one. So a log writes bundles first, and sorts many of them into batches at once. The row of a bundle has the
columns of a batch: it is of the stream `BUNDLES`, and its offsets are the LSNs of its records, less one.
"""

from __future__ import annotations

import struct
from itertools import accumulate, pairwise
from typing import Final

from styx.log.base import Stream
from styx.log.batch import Batch, BatchDamaged, checksum, verify
from styx.log.tail import Run

BUNDLES: Final = 255
"""In place of a stream."""
_COUNT: Final = struct.Struct("<I")
_NUMBERS_OF_RUN: Final = 4
"""Stream, partition, first offset, and number of records, of eight bytes each."""


def bundle(runs: list[Run], first_lsn: int) -> Batch:
    """The bundle of `runs`, with LSNs from `first_lsn` on in this order."""
    numbers: list[int] = []
    timestamps_us: list[int] = []
    payloads: list[bytes] = []
    for stream, partition, first_offset, its_timestamps_us, its_payloads in runs:
        numbers += (stream, partition, first_offset, len(its_payloads))
        timestamps_us += its_timestamps_us
        payloads += its_payloads
    n_records = len(payloads)
    body = b"".join(
        (
            _COUNT.pack(len(runs)),
            struct.pack(f"<{len(numbers) + n_records}q", *numbers, *timestamps_us),
            struct.pack(f"<{n_records}I", *map(len, payloads)),
            *payloads,
        )
    )
    header = (BUNDLES, 0, first_lsn - 1, n_records, first_lsn + n_records - 1)
    return Batch(*header, checksum(*header, body), body)


def unbundle(batch: Batch, only: tuple[int, int] | None = None) -> list[Run]:
    """The runs of a bundle, or `only` that of this stream and partition. Raises `BatchDamaged`."""
    try:
        verify(batch)
    except BatchDamaged:
        last_lsn = batch.last_lsn
        raise BatchDamaged(
            f"the checksum of the commit with the records {last_lsn - batch.n_records + 1} to {last_lsn} of all "
            "partitions does not match"
        ) from None
    body, n_records = batch.body, batch.n_records
    n_numbers = _NUMBERS_OF_RUN * _COUNT.unpack_from(body)[0]
    numbers = struct.unpack_from(f"<{n_numbers}q", body, _COUNT.size)
    if only is not None and only not in zip(numbers[::_NUMBERS_OF_RUN], numbers[1::_NUMBERS_OF_RUN], strict=True):
        return []
    times_begin = _COUNT.size + 8 * n_numbers
    timestamps_us = struct.unpack_from(f"<{n_records}q", body, times_begin)
    lengths_begin = times_begin + 8 * n_records
    lengths = struct.unpack_from(f"<{n_records}I", body, lengths_begin)
    ends = list(accumulate(lengths, initial=lengths_begin + 4 * n_records))
    runs = []
    start = 0
    for at in range(0, n_numbers, _NUMBERS_OF_RUN):
        stream, partition, first_offset, count = numbers[at : at + _NUMBERS_OF_RUN]
        end = start + count
        if only is None or only == (stream, partition):
            payloads = [body[begin:stop] for begin, stop in pairwise(ends[start : end + 1])]
            runs.append(Run(Stream(stream), partition, first_offset, list(timestamps_us[start:end]), payloads))
        start = end
    return runs


class Gathered:
    """The records of all bundles that are not sorted into batches yet, about `n_bytes`."""

    def __init__(self) -> None:
        self.n_records = 0
        self.n_bytes = 0
        self._runs: dict[tuple[Stream, int], Run] = {}

    def add(self, runs: list[Run], n_bytes: int) -> None:
        """Adds the records of the next commit, and keeps their lists."""
        for run in runs:
            before = self._runs.setdefault((run.stream, run.partition), run)
            if before is not run:
                before.timestamps_us.extend(run.timestamps_us)
                before.payloads.extend(run.payloads)
            self.n_records += len(run.payloads)
        self.n_bytes += n_bytes

    def holds(self, stream: Stream, partition: int, below: int) -> bool:
        """Whether there is a record of the partition with an offset `below` this one."""
        run = self._runs.get((stream, partition))
        return run is not None and run.first_offset < below

    def take(self) -> list[Run]:
        """One run for each partition; none are left."""
        runs = list(self._runs.values())
        self._runs = {}
        self.n_records = self.n_bytes = 0
        return runs

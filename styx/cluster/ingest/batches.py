"""Records of a partition cut into batches: bounded in number and bytes, in order, and without a gap between two.

Pure. A record that no request has room for is cut to its beginning, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from styx.cluster.ingest.source import SourceRecord
from styx.model.ingest_position import BATCH_RECORDS_MAX, Batch, RawRecord
from styx.model.limits import Limits

BATCH_BYTES_MAX: Final = 256 * 1024
"""Bytes of one batch, unless a single record is larger."""
KEPT_BYTES: Final = 1_024
"""How much is kept of the value of a record that is too large."""
ROOM_BYTES: Final = 16 * 1024
"""What of a request is not the record's own bytes, at most."""
RECORD_OVERHEAD: Final = 64
HEADER_OVERHEAD: Final = 16


def record_bytes_max(limits: Limits) -> int:
    """The largest record that can be sent."""
    return max(KEPT_BYTES, min(limits.request_bytes_max, limits.value_bytes_max) - ROOM_BYTES)


def cut(topic_id: str, begin: int, records: Sequence[SourceRecord], bytes_max: int) -> Iterator[Batch]:
    """Batches of what was read from the offset `begin` on; `bytes_max` is that of one record."""
    batch: list[RawRecord] = []
    n_bytes = 0
    for each in records:
        raw, size = _raw(each, bytes_max)
        if batch and (len(batch) == BATCH_RECORDS_MAX or n_bytes + size > min(BATCH_BYTES_MAX, bytes_max)):
            end = batch[-1].offset + 1
            yield Batch(topic_id, begin, end, batch)
            begin, batch, n_bytes = end, [], 0
        batch.append(raw)
        n_bytes += size
    if batch:
        yield Batch(topic_id, begin, batch[-1].offset + 1, batch)


def _raw(record: SourceRecord, bytes_max: int) -> tuple[RawRecord, int]:
    headers = [(str(name), value) for name, value in record.headers or ()]
    key, value = record.key, record.value
    size = RECORD_OVERHEAD + len(key or b"") + len(value or b"") + _headers_bytes(headers)
    if size <= bytes_max:
        return RawRecord(record.offset, record.timestamp, key, value, headers), size
    kept_key = None if key is None else key[:KEPT_BYTES]
    kept = None if value is None else value[:KEPT_BYTES]
    return RawRecord(record.offset, record.timestamp, kept_key, kept, [], size), RECORD_OVERHEAD + 2 * KEPT_BYTES


def _headers_bytes(headers: Iterable[tuple[str, bytes | None]]) -> int:
    return sum(HEADER_OVERHEAD + 4 * len(name) + len(value or b"") for name, value in headers)

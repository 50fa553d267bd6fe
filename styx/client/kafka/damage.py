"""Where to read on behind a batch of records that cannot be read. Pure; repairs nothing."""

from __future__ import annotations

from aiokafka.record.memory_records import MemoryRecords

from styx.kafka.fetch import Chunk


def offset_behind(chunk: Chunk, position: int) -> int:
    """The offset behind the batch at `position`, which is damaged; the next offset if its length cannot be believed."""
    try:
        batches = MemoryRecords(chunk.data)
        while batches.has_next():
            batch = batches.next_batch()
            behind = batch.next_offset
            if behind > position and batch.is_control_batch and batch.validate_crc():
                position = behind
            elif behind > position:
                return behind if behind <= chunk.end else position + 1
    except Exception:  # noqa: BLE001 - whatever a damaged batch makes of its reader
        return position + 1
    return position + 1

"""The engine's own records of everything it was asked and answered, read from its log after it has ended.

Reads a data directory that nobody uses; judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from styx.data_directory import DataDirectory
from styx.embedded_engine.storage import LOG_NAME
from styx.log.base import Stream
from styx.log.sqlite import SqliteLog
from styx.messages import ReplyRecord, Request, decode_reply, decode_request


@dataclass(slots=True)
class History:
    """Every request with its time in microseconds by request id, and the replies stream as it stands."""

    requests: dict[str, tuple[Request, int]]
    replies: list[ReplyRecord]


def read_history(data_dir: Path, n_slots: int) -> History:
    """The whole history in a directory whose log was kept; raises `StyxError` if it is in use or damaged."""
    with DataDirectory(data_dir):
        log = SqliteLog(data_dir / LOG_NAME)
        try:
            return History(
                {
                    request.request_id: (request, record.timestamp_us)
                    for slot in range(n_slots)
                    for record in log.read(Stream.REQUESTS, slot, 0)
                    for request in (decode_request(record.payload),)
                },
                [
                    decode_reply(record.payload)
                    for slot in range(n_slots)
                    for record in log.read(Stream.REPLIES, slot, 0)
                ],
            )
        finally:
            log.close()

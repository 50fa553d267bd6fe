"""The history that an engine's log holds, in the form that `check_history` takes.

An engine releases log records once snapshots cover them. The history is complete only if the engine was told to keep
its log.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from styx.embedded_engine.storage import LOG_NAME, DataDirectory
from styx.errors import StyxError
from styx.log.base import Log, Stream
from styx.log.sqlite import SqliteLog
from styx.messages import ReplyRecord, Request, decode_reply, decode_request
from styx.sequencer.epoch_record import decode_external
from styx.testing.serial import ExternalResult, external_result


class RecordedHistory(NamedTuple):
    """Requests by id with the time they entered the log (microseconds since 1970), replies in stream order by slot, and
    the results of external functions by log key. `undecodable` counts request records that are none.
    """

    requests: dict[str, tuple[Request, int]]
    replies: list[ReplyRecord]
    externals: dict[bytes, ExternalResult]
    undecodable: int


class HistoryReleased(StyxError):
    """The log's beginning was released: a check from there on would prove nothing."""


def read_history(log: Log, n_slots: int) -> RecordedHistory:
    """The durable history in the log of an engine with `n_slots`.

    Raises `HistoryReleased` unless the log is there from its first record on, and what reading raises.
    """
    history = RecordedHistory({}, [], {}, 0)
    undecodable = 0
    for slot in range(n_slots):
        for stream in (Stream.REQUESTS, Stream.REPLIES):
            if log.bounds(stream, slot)[0] > 0:
                raise HistoryReleased(
                    f"the first records of {stream.name} partition {slot} were released: run the engine with "
                    "keep_log=True from the start on"
                )
        for record in log.read(Stream.REQUESTS, slot, 0):
            try:
                request = decode_request(record.payload)
            except (msgspec.DecodeError, ValueError, RecursionError):
                undecodable += 1
            else:
                history.requests[request.request_id] = (request, record.timestamp_us)
        history.replies.extend(decode_reply(record.payload) for record in log.read(Stream.REPLIES, slot, 0))
        first, _ = log.bounds(Stream.EXTERNALS, slot)
        for record in log.read(Stream.EXTERNALS, slot, first):
            call = decode_external(record.payload)
            if call.outcome is not None:
                history.externals[call.key] = external_result(call.outcome)
    return history._replace(undecodable=undecodable)


def read_history_of(data_dir: str | os.PathLike[str], n_slots: int) -> RecordedHistory:
    """The history in a data directory that no engine holds, however that ended.

    Raises `DataDirectoryInUse`, `HistoryReleased` and `EngineFailed`.
    """
    with DataDirectory(data_dir):
        log = SqliteLog(Path(data_dir) / LOG_NAME)
        try:
            return read_history(log, n_slots)
        finally:
            log.close()

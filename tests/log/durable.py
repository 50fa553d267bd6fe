"""Waiting for a log to be durable, and short ways to fill and read one. Never sleeps."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Event

from styx.log.base import Log, Record, Stream
from styx.testing.patience import PATIENCE_SECONDS

WAIT_SECONDS_MAX = PATIENCE_SECONDS


def commit(log: Log) -> None:
    """Flushes, and returns when everything appended is durable."""
    reached = Event()
    target = log.lsn
    log.on_durable(lambda lsn: reached.set() if lsn >= target else None)
    log.flush()
    assert log.durable_lsn >= target or reached.wait(WAIT_SECONDS_MAX)


def fill(log: Log, payloads: Iterable[bytes], stream: Stream = Stream.REQUESTS, partition: int = 0) -> None:
    """Appends and commits the payloads, each with its offset as its timestamp."""
    for payload in payloads:
        log.append(stream, partition, log.bounds(stream, partition)[1], payload)
    commit(log)


def records(payloads: Iterable[bytes], first_offset: int = 0) -> list[Record]:
    """What `fill` leaves in an empty partition."""
    return [Record(offset, offset, payload) for offset, payload in enumerate(payloads) if offset >= first_offset]


def read(log: Log, first_offset: int = 0, stream: Stream = Stream.REQUESTS, partition: int = 0) -> list[Record]:
    return list(log.read(stream, partition, first_offset))

"""Replies under way: who waits for them to be durable is called then, and is let go of when the generation ends."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
from typing import cast
from weakref import ref

import pytest

from styx.cluster.worker.reply_log import APPEND_BYTES, QUEUED_BYTES_MAX, ReplyLog
from styx.kafka.appender import Appender
from styx.messages import ReplyRecord

pytestmark = pytest.mark.anyio


class FakeAppender:
    """Appends when it is told to."""

    queued_bytes = 0

    def __init__(self) -> None:
        self.appended: list[asyncio.Future[int]] = []
        self.counts: list[int] = []

    def append(self, _: object, __: object, records: Sequence[object]) -> asyncio.Future[int]:
        self.counts.append(len(records))
        self.appended.append(asyncio.get_running_loop().create_future())
        return self.appended[-1]


class Snapshot:
    """What waits for replies; notes its turn."""

    begun = 0

    def begin(self) -> None:
        Snapshot.begun += 1


@pytest.fixture
def no_collector() -> Iterator[None]:
    """As good as a worker's process has it."""
    Snapshot.begun = 0
    gc.disable()
    yield
    gc.enable()


def emitting(appender: FakeAppender) -> ReplyLog:
    """With replies to two partitions under way."""
    log = ReplyLog(cast(Appender, appender), "replies", 2, _never)
    log.emit([ReplyRecord(f"r{place}", place, place, 0, 1, b"\xc0", reply_to=place) for place in range(2)])
    assert len(appender.appended) == 2
    return log


def _never(error: BaseException) -> None:
    raise AssertionError from error


async def some_passes() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


def waiting_snapshot(log: ReplyLog) -> ref[Snapshot]:
    """One that begins when all replies are durable, and that nobody else knows."""
    snapshot = Snapshot()
    log.when_durable(snapshot.begin)
    return ref(snapshot)


async def test_what_waits_begins_when_all_replies_are_durable(no_collector: None) -> None:
    appender = FakeAppender()
    log = emitting(appender)
    freed = waiting_snapshot(log)
    appender.appended[0].set_result(5)
    await some_passes()
    assert Snapshot.begun == 0
    appender.appended[1].set_result(7)
    appender.appended.clear()
    await some_passes()
    assert Snapshot.begun == 1
    assert freed() is None
    assert sorted(log.ends) == [5, 7]


async def test_what_waits_when_the_generation_ends_is_freed_and_never_begins(no_collector: None) -> None:
    """A snapshot has copies of whole tables."""
    appender = FakeAppender()
    log = emitting(appender)
    freed = waiting_snapshot(log)
    assert freed() is not None
    appender.appended[0].set_result(5)  # its end is on its way, and comes too late
    log.end()
    await some_passes()
    appender.appended[1].set_result(7)
    await some_passes()
    assert freed() is None
    assert Snapshot.begun == 0


async def test_what_else_waits_in_the_appender_holds_up_no_reply() -> None:
    """Nobody would look for them again when it is gone, and a snapshot would wait for them for ever."""
    appender = FakeAppender()
    appender.queued_bytes = 10**12
    emitting(appender)


def large(count: int, size: int) -> list[ReplyRecord]:
    return [ReplyRecord(f"r{number}", number, number, 0, 1, bytes(size)) for number in range(count)]


async def test_large_replies_are_appended_in_pieces_and_held_back() -> None:
    appender = FakeAppender()
    log = ReplyLog(cast(Appender, appender), "replies", 2, _never)
    at_once = QUEUED_BYTES_MAX // APPEND_BYTES
    log.emit(large(2 * at_once + 7, APPEND_BYTES // 2))
    Snapshot.begun = 0
    log.when_durable(Snapshot().begin)
    assert appender.counts == [2] * at_once
    assert log.waiting_bytes > (at_once + 3) * APPEND_BYTES
    done = 0
    while done < len(appender.appended):
        appender.appended[done].set_result(done)
        done += 1
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert appender.counts == [2] * (at_once + 3) + [1]
    assert (log.waiting_bytes, Snapshot.begun) == (0, 1)

"""What a tail delivers of an answer that it asked for under other circumstances, and what it asks for no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from styx.errors import EngineFailed
from styx.kafka import tail as tail_module
from styx.kafka.session import KafkaSession
from styx.kafka.tail import RequestFeed, Tail
from styx.kafka.wire import Chunk
from styx.testing.patience import PATIENCE_SECONDS
from tests.client.kafka.fake_session import FakeSession, turns

pytestmark = pytest.mark.anyio

NOT_ALLOWED = 29
N_SLOTS = 3
ROUNDS = 4


def batch(first: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    builder.append(0, 1_000, None, b"x", [])
    return first.to_bytes(8, "big") + bytes(builder.build())[8:]


class Looked(FakeSession):
    """Counts how often somebody looks for a leader, and notes which connection a fetch takes."""

    looks = 0

    def __init__(self) -> None:
        super().__init__()
        self.connections: list[str] = []

    async def send(self, node: int, request: Any, *, apart: bool = False) -> Any:
        self.connections.append("second" if apart else "first")
        return await super().send(node, request)

    def leader(self, topic: str, partition: int) -> int | None:
        self.looks += 1
        return super().leader(topic, partition)

    async def answer(self, partition: int = 0, code: int = 0, data: bytes = b"") -> int:
        """Answers the fetch that was the first; gives the offset that it asked for."""
        await turns()
        node, offset = self.fetches.get_nowait()
        assert node == self.leaders.get(partition, 0)
        self.fetched.put_nowait((code, 1_000, data))
        await turns()
        return offset


class Taken(Tail):
    """Notes the offsets behind what came."""

    def __init__(self, session: FakeSession) -> None:
        super().__init__(cast(KafkaSession, session), "requests", "requests", partition_bytes_max=1_000)
        self.taken: list[tuple[int, int]] = []
        self.failures: list[BaseException] = []

    async def _take(self, chunks: dict[int, Chunk]) -> None:
        for partition, chunk in chunks.items():
            self._move(partition, chunk.next_offset(self._positions[partition]))
            self.taken.append((partition, self._positions[partition]))

    def _outside(self, partition: int, first: int, end: int) -> None:
        raise AssertionError

    def _failed(self, error: BaseException) -> None:
        self.failures.append(error)


@pytest.fixture
def session() -> Looked:
    return Looked()


@pytest.fixture
async def tail(session: Looked, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Taken]:
    monkeypatch.setattr(tail_module, "RETRY_SECONDS", 0)
    tail = Taken(session)
    yield tail
    await tail.stop()


async def test_a_paused_partition_is_neither_delivered_nor_asked_for(session: Looked, tail: Taken) -> None:
    tail.assign({0: 7})
    await turns()
    tail.pause(0)
    assert await session.answer(data=batch(7)) == 7
    looks = session.looks
    await turns()
    assert (tail.taken, session.fetches.qsize(), session.looks) == ([], 0, looks), "nor looked for, over and over"
    tail.resume(0)
    assert await session.answer(data=batch(7)) == 7
    assert tail.taken == [(0, 8)]


async def test_an_assignment_ends_the_one_before(session: Looked, tail: Taken) -> None:
    tail.assign({0: 7})
    await turns()
    tail.assign({0: 20})
    await turns()
    assert [session.fetches.get_nowait() for _ in range(2)] == [(0, 7), (0, 20)]
    session.fetched.put_nowait((0, 1_000, batch(20)))
    await turns()
    assert tail.taken == [(0, 21)]
    assert session.connections == ["second", "first", "first"], "an answer to what was given up would come before"


async def test_nothing_is_delivered_after_a_failure(session: Looked, tail: Taken) -> None:
    session.leaders = {1: 4}
    tail.assign({0: 7, 1: 7})
    await turns()
    for answer in (NOT_ALLOWED, 1_000, b""), (0, 1_000, batch(7)):
        session.fetched.put_nowait(answer)
        await turns()
    assert [type(failure) for failure in tail.failures] == [EngineFailed]
    assert tail.taken == []
    assert not tail.lag()
    assert session.fetched.qsize() == 1, "the other fetch was given up"


class Crowded:
    """A broker with so much of every slot that an answer has room only for the one that is asked for first."""

    def __init__(self) -> None:
        self.first: list[int] = []
        self.enough = asyncio.Event()

    async def open(self, topics: object = ()) -> None:
        pass

    async def close(self) -> None:
        pass

    def leader(self, topic: str, partition: int) -> int:
        return 1

    async def send(self, node: int, request: Any, *, apart: bool = False) -> Any:
        ((topic, wanted),) = request._topics
        self.first.append(wanted[0][0])
        if len(self.first) == ROUNDS * N_SLOTS:
            self.enough.set()
            await asyncio.Event().wait()
        came = wanted[0][0]
        entries = [(slot, 0, 1_000, batch(offset) if slot == came else b"") for slot, offset, _ in wanted]
        return SimpleNamespace(topics=[(topic, entries)])


async def test_slots_take_turns_at_coming_first(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Crowded()
    monkeypatch.setattr("styx.kafka.tail.KafkaSession", lambda address: broker)
    failures: list[BaseException] = []
    feed = RequestFeed("nowhere:1", "requests", deliver=lambda arrived: None, on_failure=failures.append)
    await feed.start()
    feed.assign(dict.fromkeys(range(N_SLOTS), 0))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await broker.enough.wait()
    assert broker.first == ROUNDS * list(range(N_SLOTS))
    assert feed.lag() == dict.fromkeys(range(N_SLOTS), 1_000 - ROUNDS) | {N_SLOTS - 1: 1_000 - ROUNDS + 1}
    assert not failures
    await feed.stop()

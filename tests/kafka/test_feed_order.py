"""Which slots a fetch asks for first, without a broker: one with a backlog must not keep the others waiting."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from styx.kafka.feed import RequestFeed
from styx.testing.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

N_SLOTS = 3
ROUNDS = 4


def batch(first: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    builder.append(0, 1_000, None, b"x", [])
    return first.to_bytes(8, "big") + bytes(builder.build())[8:]


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

    async def send(self, node: int, request: Any) -> Any:
        ((topic, wanted),) = request._topics
        self.first.append(wanted[0][0])
        if len(self.first) == ROUNDS * N_SLOTS:
            self.enough.set()
            await asyncio.Event().wait()
        came = wanted[0][0]
        entries = [(slot, 0, 1_000, batch(offset) if slot == came else b"") for slot, offset, _ in wanted]
        return SimpleNamespace(topics=[(topic, entries)])

    send_coordinator = send


async def test_slots_take_turns_at_coming_first(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Crowded()
    monkeypatch.setattr("styx.kafka.feed.KafkaSession", lambda address: broker)
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

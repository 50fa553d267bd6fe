"""The orders that durability rests on, with a log whose disk is as slow as the test wants it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import pytest

import styx
from styx.client.embedded import EmbeddedClient
from styx.coordinator.events import SnapshotWanted
from styx.coordinator.generation import Phase
from styx.embedded_engine.engine_log import EngineLog
from styx.embedded_engine.storage import Storage
from styx.log.base import Stream
from styx.log.memory import MemoryLog
from styx.store.memory import MemoryStore
from styx.worker.events import Step
from tests.embedded.ledger_app import app, outside

pytestmark = pytest.mark.anyio

TURNS = 50
"""Turns of the loop after which whatever is going to happen has happened."""


class SlowLog(MemoryLog):
    """A flush becomes durable only if there is a permit for it."""

    permits: float = math.inf

    def flush(self) -> None:
        if self.permits > 0 and self.backlog_records:
            self.permits -= 1
            super().flush()


class Slow:
    """An engine on a `SlowLog`, and the means to let one commit through at a time."""

    def __init__(self, client: EmbeddedClient, log: SlowLog, store: MemoryStore) -> None:
        self.client = client
        self.log = log
        self.store = store

    @property
    def external_records(self) -> int:
        """Records of the externals stream, durable or not."""
        return sum(self.log.bounds(Stream.EXTERNALS, slot)[1] for slot in range(4))

    async def commit(self, number: int = 1) -> None:
        """Lets so many commits through and everything they cause happen."""
        self.log.permits += number
        await self.settle()

    async def settle(self) -> None:
        """Nothing is left that could happen without a commit."""
        engine = self.client.engine
        for _ in range(3):
            engine._passes.wake()
            for _ in range(TURNS):
                await asyncio.sleep(0)
            idle = asyncio.get_running_loop().create_future()
            engine._background.submit("nothing", lambda: None, idle.set_result, idle.set_exception)
            await idle


@pytest.fixture
async def slow(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Slow]:
    log, store = SlowLog(), MemoryStore()
    monkeypatch.setattr(Storage, "open", lambda *_: Storage(log, store))
    async with styx.embedded(app, snapshot_interval=1000) as client:
        await client.engine.flushed()
        log.permits = 0
        yield Slow(client, log, store)
        log.permits = math.inf


async def test_a_reply_waits_for_its_epoch_record(slow: Slow) -> None:
    reply = asyncio.ensure_future(slow.client.submit("ledger", "a", "add"))
    await slow.settle()
    assert not reply.done()
    await slow.commit()
    assert reply.done()


async def test_a_snapshot_waits_for_the_replies_before_it(slow: Slow) -> None:
    engine = slow.client.engine
    reply = asyncio.ensure_future(slow.client.submit("ledger", "a", "add"))
    await slow.settle()
    engine._passes.to_coordinator(SnapshotWanted())
    # The epoch record: the reply is given and stands in the log's memory, and the snapshot has begun.
    await slow.commit()
    assert reply.done()
    assert engine.coordinator.ledger.under_way is not None
    assert slow.store.list("manifests/") == [], "whether its parts are there or not"
    # The reply.
    await slow.commit()
    assert len(slow.store.list("manifests/")) == 1


async def test_an_outside_function_waits_for_its_intent_and_its_transaction_for_the_outcome(slow: Slow) -> None:
    runs: list[int] = []
    outside["slow"] = lambda: runs.append(1)
    reply = asyncio.ensure_future(slow.client.submit("ledger", "a", "call_outside", "slow"))
    await slow.settle()
    while not slow.external_records:
        await slow.commit()
    # The intent is in the log's memory.
    assert runs == []
    await slow.commit()
    while slow.client.engine._externals._tasks:
        await slow.settle()
    # And now the outcome.
    assert (runs, slow.external_records) == ([1], 2)
    assert slow.client.engine.worker.reached is Step.IDLE
    await slow.commit(10)
    assert (await reply).error is None
    outside.clear()


async def test_a_generation_waits_for_its_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    log, store = SlowLog(), MemoryStore()
    log.permits = 0
    monkeypatch.setattr(Storage, "open", lambda *_: Storage(log, store))
    client = styx.embedded(app)
    slow = Slow(client, log, store)
    opening = asyncio.ensure_future(client.__aenter__())
    await asyncio.sleep(0)
    await slow.settle()
    assert client.engine.coordinator.phase is Phase.FENCING
    assert not opening.done()
    await slow.commit()
    await opening
    log.permits = math.inf
    await client.close()


def test_durable_waiters_run_in_order_and_once() -> None:
    slow, seen = SlowLog(), list[int]()
    log = EngineLog(slow)
    for number in range(2):
        log.append(Stream.EPOCHS, 0, b"")
        for again in range(2):
            log.when_durable(lambda it=2 * number + again: seen.append(it))  # type: ignore[misc]
        slow.permits = number
        assert log.pending
        log.flush()
        assert (seen, log.pending) == (([], False) if number == 0 else ([0, 1, 2, 3], False))
    log.append(Stream.EPOCHS, 0, b"")
    log.when_durable(lambda: seen.append(4))
    slow.permits = 1
    log.flush(stopped=True)
    assert (seen, slow.permits) == ([0, 1, 2, 3], 1)
    MemoryLog.flush(slow)
    assert log.pending
    log.flush(stopped=True)
    assert seen == [0, 1, 2, 3, 4]

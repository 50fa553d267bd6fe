"""A broker that is killed and comes back: nothing appended is lost, doubled or reordered, and readers go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from styx.kafka.appender import Appender
from styx.kafka.reader import KafkaReader
from styx.kafka.tail import RequestFeed
from styx.kafka.topics import Topics
from styx.kafka.transaction import fence
from styx.log.base import Arrival, Stream
from styx.testing.patience import PATIENCE_SECONDS
from tests.kafka.blocking import in_thread, numbers, read_all, record
from tests.kafka.conftest import N_SLOTS
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

IN_FLIGHT_MAX = 50
"""Appends of one slot that a test lets wait."""


@pytest.fixture(scope="module")
def kafka(kafka_of_its_own: RealKafka) -> RealKafka:
    return kafka_of_its_own


class Load:
    """Appends numbered records to every slot, without a pause, until it is told to end."""

    def __init__(self, appender: Appender, topics: Topics) -> None:
        self.ends: dict[int, list[asyncio.Future[int]]] = {slot: [] for slot in range(N_SLOTS)}
        self._ending = False
        self._more = asyncio.Event()
        self._tasks = [asyncio.create_task(self._append(appender, topics, slot)) for slot in range(N_SLOTS)]

    async def _append(self, appender: Appender, topics: Topics, slot: int) -> None:
        futures = self.ends[slot]
        while not self._ending:
            futures.append(appender.append(topics.requests, slot, [record(len(futures))]))
            self._more.set()
            await asyncio.sleep(0)
            if len(futures) >= IN_FLIGHT_MAX:
                await asyncio.wait([futures[-IN_FLIGHT_MAX]])

    async def until(self, per_slot: int) -> None:
        while self.count() < per_slot:
            self._more.clear()
            await self._more.wait()

    async def end(self) -> None:
        self._ending = True
        await asyncio.gather(*self._tasks)
        await asyncio.wait([future for futures in self.ends.values() for future in futures])

    def count(self) -> int:
        return min(len(futures) for futures in self.ends.values())


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.usefixtures("frequent_commits")
async def test_a_kill_amid_appends_loses_doubles_and_reorders_nothing(
    kafka: RealKafka,
    appender: Appender,
    owner_of: Callable[[str], Appender],
    reader: KafkaReader,
    topics: Topics,
    failures: list[BaseException],
    transactional: bool,
) -> None:
    if transactional:
        appender = owner_of("worker")
        await appender.start(topics)
    load = Load(appender, topics)
    await load.until(200)
    await in_thread(kafka.kill)
    before = load.count()
    await in_thread(kafka.start)
    await load.until(before + 200)
    await load.end()
    assert failures == []
    for slot, futures in load.ends.items():
        read = await read_all(reader, Stream.REQUESTS, slot)
        assert numbers(read) == list(range(len(futures)))
        assert [future.result() for future in futures] == [each.offset + 1 for each in read]


async def test_a_feed_goes_on_and_says_so_once(
    kafka: RealKafka,
    appender: Appender,
    topics: Topics,
    failures: list[BaseException],
    caplog: pytest.LogCaptureFixture,
) -> None:
    arrived: list[int] = []
    second = asyncio.Event()

    def deliver(fetched: dict[int, list[Arrival]]) -> None:
        arrived.extend(int(payload) for arrivals in fetched.values() for _, _, payload in arrivals)
        if len(arrived) >= 2:
            second.set()

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name == "styx.kafka.tail"]

    feed = RequestFeed(kafka.bootstrap, topics.requests, deliver=deliver, on_failure=failures.append)
    await feed.start()
    feed.assign(dict.fromkeys(range(N_SLOTS), 0))
    await appender.append(topics.requests, 0, [record(0)])
    with caplog.at_level(logging.WARNING, "styx"):
        await in_thread(kafka.kill)
        later = appender.append(topics.requests, 0, [record(1)])
        while not said():  # noqa: ASYNC110 - a log is no event source
            await asyncio.sleep(0.01)
        await in_thread(kafka.start)
        await later
        await second.wait()
        while len(said()) < 2:  # noqa: ASYNC110 - the log says it behind what it delivers
            await asyncio.sleep(0.01)
    await feed.stop()
    assert arrived == [0, 1]
    assert failures == []
    away, back = said()
    assert "read again when it answers" in away
    assert "answers again" in back


async def test_a_recovery_waits_for_the_broker(
    kafka: RealKafka,
    owner_of: Callable[[str], Appender],
    reader: KafkaReader,
    topics: Topics,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("styx.kafka.reader.READ_SECONDS_MAX", PATIENCE_SECONDS)
    owner = owner_of("worker")
    await owner.start(topics)
    await owner.append(topics.epochs, 0, [record(0)])
    assert numbers(await read_all(reader, Stream.EPOCHS, 0)) == [0]
    await in_thread(kafka.kill)
    recovery = asyncio.gather(
        fence(kafka.bootstrap, [f"{topics.requests}.worker"], PATIENCE_SECONDS), read_all(reader, Stream.EPOCHS, 0)
    )
    await in_thread(kafka.start)
    assert numbers((await recovery)[1]) == [0]


async def test_stopping_while_the_broker_is_away_does_not_wait_for_it(
    kafka: RealKafka, owner_of: Callable[[str], Appender], topics: Topics
) -> None:
    owner = owner_of("worker")
    await owner.start(topics)
    await owner.append(topics.epochs, 0, [record(0)])
    feed = RequestFeed(kafka.bootstrap, topics.requests, deliver=lambda *_: None, on_failure=lambda _: None)
    await feed.start()
    feed.assign({0: 0})
    await in_thread(kafka.kill)
    try:
        waiting = owner.append(topics.epochs, 0, [record(1)])
        await asyncio.sleep(0.3)
        owner.abort()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await owner.stop()
            await feed.stop()
        assert waiting.exception() is not None
    finally:
        await in_thread(kafka.start)

"""A tail of a topic: what it delivers of an answer that it asked for under other circumstances, and what it asks for no
more; then requests fed from a real broker: assignment, pauses, gaps, lag, and what ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from styx.errors import EngineFailed
from styx.kafka import tail as tail_module
from styx.kafka.appender import Appender
from styx.kafka.offsets import LogEnds
from styx.kafka.session import KafkaSession
from styx.kafka.tail import RequestFeed, Tail
from styx.kafka.topics import Topics
from styx.kafka.wire import Chunk
from styx.log.base import Arrival, LogCorrupt, LogTruncated
from styx.testing.patience import PATIENCE_SECONDS
from tests.client.kafka.fake_session import FakeSession, turns
from tests.kafka.blocking import record, records
from tests.kafka.conftest import N_SLOTS
from tests.real_services import RealKafka

pytestmark = pytest.mark.anyio

NOT_ALLOWED = 29
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


class Delivered:
    """What a feed delivered; `on_delivery` may be replaced by a test."""

    def __init__(self) -> None:
        self.arrivals: list[tuple[int, Arrival]] = []
        self.on_delivery: Callable[[], None] = lambda: None
        self._news = asyncio.Event()

    def __call__(self, arrived: dict[int, list[Arrival]]) -> None:
        self.arrivals += [(slot, arrival) for slot, arrivals in arrived.items() for arrival in arrivals]
        self._news.set()
        self.on_delivery()

    def of(self, slot: int) -> list[int]:
        return [int(arrival[2]) for each, arrival in self.arrivals if each == slot]

    async def until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._news.clear()
            await self._news.wait()


@pytest.fixture
def delivered() -> Delivered:
    return Delivered()


@pytest.fixture
async def failure() -> asyncio.Future[BaseException]:
    """What the feed fails with; a second failure would raise."""
    return asyncio.get_running_loop().create_future()


@pytest.fixture
async def feed(
    kafka: RealKafka, topics: Topics, delivered: Delivered, failure: asyncio.Future[BaseException]
) -> AsyncIterator[RequestFeed]:
    feed = RequestFeed(kafka.bootstrap, topics.requests, deliver=delivered, on_failure=failure.set_result)
    await feed.start()
    yield feed
    await feed.stop()


@pytest.mark.slow
async def test_reading_goes_on_when_the_broker_has_forgotten_the_session(
    feed: RequestFeed, delivered: Delivered, appender: Appender, topics: Topics
) -> None:
    feed.assign({0: 0, 1: 0})
    await appender.append(topics.requests, 0, [record(0)])
    await delivered.until(lambda: len(delivered.arrivals) == 1)
    (session,) = feed._fetching.values()
    first = session._id
    assert first, "the broker keeps no sessions"
    session._epoch = 77
    await appender.append(topics.requests, 0, [record(1)])
    await delivered.until(lambda: delivered.of(0) == [0, 1])
    await appender.append(topics.requests, 0, [record(2)])
    await delivered.until(lambda: delivered.of(0) == [0, 1, 2])
    assert session._id not in (0, first)


@pytest.mark.slow
async def test_slots_are_delivered_from_their_offsets_on(
    feed: RequestFeed, delivered: Delivered, appender: Appender, topics: Topics
) -> None:
    for slot in range(3):
        await appender.append(topics.requests, slot, records(range(100)))
    feed.assign({0: 0, 2: 90})
    await delivered.until(lambda: len(delivered.arrivals) >= 110)
    await appender.append(topics.requests, 2, [record(100)])
    await delivered.until(lambda: len(delivered.arrivals) >= 111)
    assert delivered.of(0) == list(range(100))
    assert delivered.of(2) == list(range(90, 101))
    assert [arrival[0] for slot, arrival in delivered.arrivals if slot == 2] == list(range(90, 101))
    assert all(arrival[1] > 1_700_000_000_000_000 for _, arrival in delivered.arrivals)


@pytest.mark.slow
async def test_nothing_of_an_old_assignment_comes_after_a_new_one(
    feed: RequestFeed, delivered: Delivered, appender: Appender, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_partition_bytes_max", 1000)
    monkeypatch.setattr(appender._producer, "_batch_bytes_max", 500)
    for slot in range(N_SLOTS):
        await appender.append(topics.requests, slot, records(range(200)))
    begin = 0
    seen: list[bool] = []

    def assign_again() -> None:
        nonlocal begin
        seen.extend(arrival[0] >= begin for _, arrival in delivered.arrivals)
        if begin < 50:
            begin += 1
            delivered.arrivals.clear()
            feed.assign(dict.fromkeys(range(N_SLOTS), begin))

    delivered.on_delivery = assign_again
    feed.assign(dict.fromkeys(range(N_SLOTS), 0))
    await delivered.until(lambda: len(delivered.arrivals) >= 150 * N_SLOTS)
    assert all(seen)
    assert [delivered.of(slot) for slot in range(N_SLOTS)] == [list(range(50, 200))] * N_SLOTS


@pytest.mark.slow
async def test_an_assignment_while_a_request_waits_at_the_broker(
    feed: RequestFeed,
    delivered: Delivered,
    appender: Appender,
    topics: Topics,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # The broker holds the request, and with it the connection, until the session gives the connection up.
    monkeypatch.setattr("styx.kafka.tail.WAIT_MS", 400_000)
    await appender.append(topics.requests, 1, records(range(5)))
    feed.assign({0: 0})
    await asyncio.sleep(0.05)
    feed.assign({1: 0})
    await delivered.until(lambda: len(delivered.arrivals) >= 5)
    assert delivered.of(1) == list(range(5))
    assert [each.getMessage() for each in caplog.records if each.name == "styx.kafka.tail"] == []


@pytest.mark.slow
async def test_a_paused_slot_waits_and_then_goes_on(
    feed: RequestFeed, delivered: Delivered, appender: Appender, topics: Topics
) -> None:
    for slot in (0, 1):
        await appender.append(topics.requests, slot, records(range(50)))
    feed.assign({0: 0, 1: 0})
    feed.pause(0)
    await delivered.until(lambda: len(delivered.of(1)) >= 50)
    await appender.append(topics.requests, 1, [record(50)])
    await delivered.until(lambda: len(delivered.of(1)) >= 51)
    assert delivered.of(0) == []
    feed.resume(0)
    await delivered.until(lambda: len(delivered.of(0)) >= 50)
    assert delivered.of(0) == list(range(50))


@pytest.mark.slow
async def test_pauses_amid_deliveries_lose_and_double_nothing(
    feed: RequestFeed, delivered: Delivered, appender: Appender, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_partition_bytes_max", 1000)
    monkeypatch.setattr(appender._producer, "_batch_bytes_max", 500)
    loop = asyncio.get_running_loop()
    paused: set[int] = set()
    in_a_pause = []

    def pause_other() -> None:
        slot = delivered.arrivals[-1][0]
        if slot in paused:
            in_a_pause.append(slot)
        paused.add(1 - slot)
        feed.pause(1 - slot)
        loop.call_soon(resume, 1 - slot)

    def resume(slot: int) -> None:
        paused.discard(slot)
        feed.resume(slot)

    delivered.on_delivery = pause_other
    for slot in (0, 1):
        await appender.append(topics.requests, slot, records(range(300)))
    feed.assign({0: 0, 1: 0})
    await delivered.until(lambda: len(delivered.arrivals) >= 600)
    assert in_a_pause == []
    assert delivered.of(0) == delivered.of(1) == list(range(300))


@pytest.mark.slow
@pytest.mark.usefixtures("frequent_commits")
async def test_control_records_are_passed_over(
    feed: RequestFeed, delivered: Delivered, owner_of: Callable[[str], Appender], topics: Topics
) -> None:
    owner = owner_of("worker")
    await owner.start(topics)
    feed.assign({0: 0})
    for number in range(30):
        await owner.append(topics.requests, 0, [record(number)])
    await delivered.until(lambda: len(delivered.arrivals) >= 30)
    assert delivered.of(0) == list(range(30))
    assert delivered.arrivals[-1][1][0] > 30


@pytest.mark.slow
async def test_lag_counts_what_is_not_delivered(
    feed: RequestFeed, delivered: Delivered, appender: Appender, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appender._producer, "_batch_bytes_max", 500)
    monkeypatch.setattr(feed, "_partition_bytes_max", 600)
    await appender.append(topics.requests, 0, records(range(100)))
    delivered.on_delivery = lambda: feed.pause(0)
    feed.assign({0: 0})
    await delivered.until(lambda: bool(delivered.arrivals))
    assert feed.lag() == {0: 100 - len(delivered.arrivals)}
    delivered.on_delivery = lambda: None
    feed.resume(0)
    await delivered.until(lambda: len(delivered.arrivals) >= 100)
    assert feed.lag() == {0: 0}


@pytest.mark.slow
async def test_released_requests_end_it(
    kafka: RealKafka,
    feed: RequestFeed,
    delivered: Delivered,
    appender: Appender,
    topics: Topics,
    failure: asyncio.Future[BaseException],
) -> None:
    await appender.append(topics.requests, 0, records(range(10)))
    ends = LogEnds(kafka.bootstrap, topics)
    await ends.open()
    await ends.release({(topics.requests, 0): 5})
    await ends.close()
    feed.assign({0: 4, 1: 0})
    assert isinstance(await failure, LogTruncated)
    assert delivered.arrivals == []


@pytest.mark.slow
async def test_requests_that_are_gone_end_it(feed: RequestFeed, failure: asyncio.Future[BaseException]) -> None:
    feed.assign({0: 3})
    assert isinstance(await failure, LogCorrupt)


@pytest.mark.slow
async def test_what_deliver_raises_ends_it(
    feed: RequestFeed, delivered: Delivered, appender: Appender, topics: Topics, failure: asyncio.Future[BaseException]
) -> None:
    delivered.on_delivery = _fail
    await appender.append(topics.requests, 0, [record(1)])
    feed.assign({0: 0})
    assert "ZeroDivisionError" in str(await failure)


def _fail() -> None:
    raise ZeroDivisionError("on purpose")


@pytest.mark.slow
async def test_it_asks_for_more_only_when_the_taker_has_use_for_it(
    kafka: RealKafka, topics: Topics, delivered: Delivered, appender: Appender, failure: asyncio.Future[BaseException]
) -> None:
    asked: list[int] = []

    def pause_s() -> float:
        asked.append(len(delivered.arrivals))
        return 3600.0 if len(asked) == 1 else 0.0

    feed = RequestFeed(
        kafka.bootstrap, topics.requests, deliver=delivered, on_failure=failure.set_result, pause_s=pause_s
    )
    await feed.start()
    try:
        await appender.append(topics.requests, 0, [record(0)])
        feed.assign({0: 0})
        await delivered.until(lambda: len(delivered.arrivals) == 1)
        await appender.append(topics.requests, 0, [record(1)])
        assert delivered.of(0) == [0]
        assert asked == [1]
        # What is assigned anew does not wait for the end of an old pause.
        feed.assign({0: 1})
        await delivered.until(lambda: len(delivered.arrivals) == 2)
        assert delivered.of(0) == [0, 1]
    finally:
        await feed.stop()

"""Feeding requests from a real broker: assignment, pauses, gaps, lag, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from styx.kafka.appender import Appender
from styx.kafka.offsets import LogEnds
from styx.kafka.tail import RequestFeed
from styx.kafka.topics import Topics
from styx.log.base import Arrival, LogCorrupt, LogTruncated
from tests.kafka.blocking import record, records
from tests.kafka.conftest import N_SLOTS
from tests.real_services import RealKafka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


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


async def test_requests_that_are_gone_end_it(feed: RequestFeed, failure: asyncio.Future[BaseException]) -> None:
    feed.assign({0: 3})
    assert isinstance(await failure, LogCorrupt)


async def test_what_deliver_raises_ends_it(
    feed: RequestFeed, delivered: Delivered, appender: Appender, topics: Topics, failure: asyncio.Future[BaseException]
) -> None:
    delivered.on_delivery = _fail
    await appender.append(topics.requests, 0, [record(1)])
    feed.assign({0: 0})
    assert "ZeroDivisionError" in str(await failure)


def _fail() -> None:
    raise ZeroDivisionError("on purpose")


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

"""Requests and replies through a real broker: each gets its own reply, whatever else is in the topics; and how they are
counted.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaProducer

from styx import App, Limits
from styx.client.kafka.requester import FEW, RequestCounters, Requester
from styx.errors import ConfigurationError, NotSent, OutcomeUnknown, RequestRejected
from styx.host.waiters import Waiter
from styx.kafka.address import KafkaAddress
from styx.kafka.topics import topics_of
from styx.messages import Reply, ReplyRecord, Request, encode_reply, encode_request
from styx.model.request import AppRouter, Placed, request_ids
from styx.testing.patience import PATIENCE_SECONDS
from tests.client.kafka.fake_worker import REPLY_PARTITIONS, FakeWorker
from tests.real_services import RealKafka

pytestmark = pytest.mark.anyio

TIMEOUT = PATIENCE_SECONDS
LIMITS = Limits(in_flight_max=100)


@pytest.fixture
async def requester(address: KafkaAddress, worker: FakeWorker) -> AsyncIterator[Requester]:
    requester = Requester(address, worker.app, LIMITS)
    await requester.start()
    yield requester
    await requester.close()


ids = request_ids()


def request(requester: Requester, function: str, params: bytes = b"\x90", slot: int = 0) -> Placed:
    made = Request(next(ids), "shelf", "key", function, params, "", requester.reply_to)
    return Placed(made.request_id, slot, encode_request(made), False)


async def outcome(requester: Requester, function: str, slot: int = 0) -> Reply:
    reply: Reply = await requester.submit(request(requester, function, slot=slot), TIMEOUT)
    return reply


@pytest.mark.slow
async def test_outcomes(requester: Requester, worker: FakeWorker) -> None:
    assert requester.n_slots == 4
    for slot in range(4):
        assert (await outcome(requester, "slot", slot)).result == slot
    failed = await outcome(requester, "fail")
    assert failed.error is not None
    assert failed.error == ("OutOfStock", "no more", "aborted")
    assert (requester.counters.committed, requester.counters.aborted, requester.in_flight) == (4, 1, 0)
    assert set(worker.runs.values()) == {1}


@pytest.mark.slow
async def test_each_gets_its_own_reply(requester: Requester) -> None:
    requests = [request(requester, "echo", b"\x91\xcd" + number.to_bytes(2, "big"), number % 4) for number in range(90)]
    replies = await asyncio.gather(*(requester.submit(each, TIMEOUT) for each in requests))
    assert [(reply.request_id, reply.result) for reply in replies] == [
        (each.request_id, [number]) for number, each in enumerate(requests)
    ]


@pytest.mark.slow
async def test_a_second_reply_is_ignored(requester: Requester) -> None:
    await outcome(requester, "twice")
    await outcome(requester, "echo")
    assert (requester.counters.committed, requester.counters.foreign) == (2, 1)


@pytest.mark.slow
async def test_a_request_that_comes_back_goes_where_its_key_belongs(requester: Requester, worker: FakeWorker) -> None:
    reply = await outcome(requester, "lives_on_3")
    assert reply.error is None
    assert (worker.slots[reply.request_id], worker.runs[reply.request_id]) == (3, 2)


@pytest.mark.slow
async def test_it_is_sent_on_only_once(requester: Requester, worker: FakeWorker) -> None:
    reply = await outcome(requester, "lives_nowhere")
    assert reply.error is not None
    assert (reply.error.type, worker.runs[reply.request_id]) == ("WrongPartition", 2)


@pytest.mark.slow
async def test_limits(requester: Requester) -> None:
    with pytest.raises(RequestRejected, match=r"too_large: the request has 1048.* send less"):
        requester.maker(AppRouter(App("shop", []), 4)).make("shelf", "key", "echo", bytes(LIMITS.request_bytes_max))
    largest = request(requester, "echo", b"\xc5\xff\xff" + bytes(65_535))
    assert len((await requester.submit(largest, TIMEOUT)).result) == 65_535
    once = request(requester, "silent")
    waiting = [requester.submit(once, raw=True)]
    with pytest.raises(RequestRejected, match="under way already"):
        requester.submit(once, raw=True)
    waiting += [requester.submit(request(requester, "silent"), raw=True) for _ in range(99)]
    with pytest.raises(RequestRejected, match="overloaded: 100 requests are in flight"):
        requester.submit(request(requester, "silent"), raw=True)
    # Who cancels makes room, though the request may still be run.
    for each in waiting:
        each.cancel()
    async with asyncio.timeout(TIMEOUT):
        while requester.in_flight:  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0.01)
    assert (await outcome(requester, "echo")).error is None


@pytest.mark.slow
async def test_records_larger_than_a_batch(requester: Requester) -> None:
    size = LIMITS.request_bytes_max - 100
    params = b"\xc6" + (size - 5).to_bytes(4, "big") + bytes(size - 5)
    replies = await asyncio.gather(
        *(requester.submit(request(requester, "echo", params), TIMEOUT) for _ in range(3)),
        requester.submit(request(requester, "echo"), TIMEOUT),
    )
    assert [len(reply.result) for reply in replies] == [size - 5] * 3 + [0]


@pytest.mark.slow
async def test_no_reply_in_time(requester: Requester) -> None:
    with pytest.raises(TimeoutError, match="the request may still commit"):
        await requester.submit(request(requester, "silent"), 0.05)
    assert requester.in_flight == 0


@pytest.mark.slow
async def test_closing_ends_the_waiting(requester: Requester) -> None:
    waiting = requester.submit(request(requester, "silent"), TIMEOUT)
    await requester.close()
    with pytest.raises(OutcomeUnknown, match="may still commit"):
        await waiting
    with pytest.raises(NotSent, match="not connected"):
        requester.submit(request(requester, "echo"), TIMEOUT)


@pytest.mark.slow
async def test_garbage_and_foreign_replies(requester: Requester, worker: FakeWorker, kafka: RealKafka) -> None:
    waiting = request(requester, "silent")
    future = requester.submit(waiting, raw=True)
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
        replies = topics_of(worker.app).replies
        for partition in range(REPLY_PARTITIONS):
            for key in (None, b"\xff\xfe", b"somebody else's", waiting.request_id.encode()):
                await producer.send(replies, key=key, value=b"\xc1", partition=partition)
            await producer.send(replies, key=waiting.request_id.encode(), partition=partition)
    async with asyncio.timeout(TIMEOUT):
        while requester.counters.garbage < 2:  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(0.01)
    assert not future.done()
    assert requester.unavailable_reason is None
    assert (await outcome(requester, "echo")).error is None
    assert requester.counters.foreign == 3


@pytest.mark.slow
async def test_nothing_is_there(address: KafkaAddress) -> None:
    with pytest.raises(ConfigurationError, match=r"lacks the topic styx\.nothing\.requests; is the app deployed"):
        await Requester(address, "nothing").start()
    with pytest.raises(NotSent, match=r"Kafka at 127\.0\.0\.1:1 cannot be reached"):
        await Requester(KafkaAddress("127.0.0.1:1"), "nothing").start()


@pytest.mark.parametrize("number", [0, 1, FEW, 10 * FEW])
def test_counted_commits(number: int) -> None:
    counters = RequestCounters()
    counters.committed_after([0.0001] * number + [3.0])
    assert counters.committed == counters.latency.count == number + 1
    assert counters.latency.counts[0] == number
    assert counters.latency.total == pytest.approx(3.0 + 0.0001 * number)


def test_counted_errors() -> None:
    counters = RequestCounters()
    for code in "aborted", "overloaded", "bad_arguments":
        counters.failed_after(code, 0.1)
    assert (counters.committed, counters.aborted, counters.rejected, counters.latency.count) == (0, 1, 2, 3)


async def test_it_takes_no_more_than_is_answered_soon() -> None:
    class Answered:
        def __init__(self) -> None:
            self.bound = 2.0
            self.told: list[tuple[int, float, int]] = []

        def answered(self, _now_s: float, count: int, quickest_s: float, in_flight: int) -> None:
            self.told.append((count, quickest_s, in_flight))

    requester = Requester(KafkaAddress("127.0.0.1:1"), "shelf")
    requester._backlog = backlog = cast(Any, Answered())
    loop = asyncio.get_running_loop()
    for number in range(4):
        waiter = Waiter(b"r%d" % number, 0, b"", loop.create_future(), True, False, loop.time() - 3, math.inf)
        requester._waiters.add(waiter)
    made = encode_reply(ReplyRecord("r0", 1, 1, 0, 1, b"\x01"))
    requester._answer([SimpleNamespace(key=b"r0", value=made)])
    ((count, quickest_s, in_flight),) = backlog.told
    assert (count, in_flight) == (1, 3)
    assert quickest_s >= 3
    with pytest.raises(RequestRejected, match="overloaded: 3 requests are in flight"):
        requester._waiters.check(b"r9")
    await requester.close()

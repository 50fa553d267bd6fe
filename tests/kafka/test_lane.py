"""What goes into a partition's next batch, of requests and of appends."""

import asyncio

import pytest
from aiokafka.record.memory_records import MemoryRecords

from styx.client.kafka.sender import Requests
from styx.kafka import lane as lane_module
from styx.kafka.appends import Append, Appends
from styx.kafka.lane import Lane
from styx.kafka.transaction import ProducerIdentity
from tests.client.kafka.fake_session import future_of, waiter
from tests.kafka.blocking import record

pytestmark = pytest.mark.anyio

IDENTITY = ProducerIdentity(7, 0)


def requests() -> Lane[Requests]:
    return Lane("requests", 0, Requests())


def built(lane: Lane[Requests], identity: ProducerIdentity = IDENTITY) -> list[bytes]:
    batch = lane.build(identity, False)
    assert batch is lane.batch
    return [] if batch is None else [record.value for record in MemoryRecords(bytes(batch)).next_batch()]


def acknowledge(lane: Lane[Requests]) -> None:
    lane.batch = None
    lane.queue.sent = []


async def test_a_full_batch_leaves_the_rest_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_module, "BATCH_BYTES_MAX", 200)
    lane = requests()
    large = waiter(bytes(300))
    lane.queue.waiting += [waiter(b"a" * 50), waiter(b"b" * 50), waiter(b"c" * 50), large]
    assert built(lane) == [b"a" * 50, b"b" * 50]
    acknowledge(lane)
    assert built(lane) == [b"c" * 50]
    acknowledge(lane)
    # One that is larger than a batch has one for itself.
    assert built(lane) == [large.payload]
    acknowledge(lane)
    assert not lane.queue.waiting


async def test_nobody_waits_for_it_any_more() -> None:
    lane = requests()
    cancelled, wanted = waiter(b"cancelled"), waiter(b"wanted")
    lane.queue.waiting += [cancelled, wanted]
    future_of(cancelled).cancel()
    assert built(lane) == [b"wanted"]
    acknowledge(lane)
    lane.queue.waiting.append(cancelled)
    assert built(lane) == []
    assert lane.batch is None


async def test_what_may_be_repeated_comes_first() -> None:
    lane = requests()
    lane.queue.waiting += [waiter(b"a", repeatable=True), waiter(b"b"), waiter(b"c", repeatable=True)]
    built(lane)
    lane.queue.waiting.append(waiter(b"d"))
    lane.queue.lost()
    lane.batch = None
    assert built(lane, ProducerIdentity(8, 0)) == [b"a", b"c", b"d"]


async def test_sequence_numbers_begin_anew_with_each_identity() -> None:
    lane = requests()
    numbers = []
    for identity in (IDENTITY, IDENTITY, ProducerIdentity(8, 0), ProducerIdentity(8, 0)):
        lane.queue.waiting += [waiter(b"a"), waiter(b"b")]
        batch = MemoryRecords(bytes(lane.build(identity, False) or b"")).next_batch()
        numbers.append((batch.producer_id, batch.base_sequence))
        acknowledge(lane)
    assert numbers == [(7, 0), (7, 2), (8, 0), (8, 0)], "another object is another identity"


async def test_an_append_that_is_spread_over_batches_ends_with_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane_module, "BATCH_BYTES_MAX", 200)
    lane = Lane("epochs", 0, Appends())
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    lane.queue.waiting.append(Append([record(number) for number in range(20)], 700, future))
    offset = released = batches = 0
    while lane.queue.waiting:
        assert not future.done()
        batch = MemoryRecords(bytes(lane.build(IDENTITY, True) or b"")).next_batch()
        assert batch.is_transactional
        released += lane.queue.acknowledged(offset)
        offset, batches = offset + len(list(batch)), batches + 1
    assert (future.result(), released) == (20, 700)
    assert batches > 2
